#include "sim/report/timeline.h"

#include <limits>

#include "sim/base/expects.h"
#include "sim/base/split_mix.h"

namespace rollcall {

std::uint32_t Timeline::intern(std::string_view name) {
  if (name.empty()) {
    return 0;
  }
  expects(names_.size() < std::numeric_limits<std::uint32_t>::max(),
          "names of a timeline have 32-bit numbers");
  auto [entry, is_new] = indexes_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    names_.emplace_back(name);
  }
  return entry->second;
}

namespace {

// A hash fed with numbers in a fixed order, so that neither byte order nor padding can matter.
class Fingerprint {
 public:
  void add(std::uint64_t number) { state_ = mixed(state_ + number); }
  void add_signed(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
  void add(const std::string& text) {
    add(text.size());
    for (const char letter : text) {
      add(static_cast<unsigned char>(letter));
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

void add_span(Fingerprint& hash, const std::vector<std::string>& names, const Span& span) {
  hash.add_signed(span.start);
  hash.add_signed(span.end);
  hash.add_signed(span.seq);
  hash.add_signed(span.numel);
  hash.add_signed(span.rank);
  hash.add_signed(span.peer);
  hash.add(static_cast<std::uint64_t>(span.kind));
  hash.add((span.async_op ? 1U : 0U) | (span.shadow ? 2U : 0U) | (span.by_roofline ? 4U : 0U) |
           static_cast<std::uint64_t>(span.stream + 1) << 8U);
  hash.add(static_cast<std::uint64_t>(span.dtype));
  for (const std::uint32_t name : {span.name, span.group, span.label, span.site, span.arguments}) {
    hash.add(names[name]);  // the number of a name depends on which came first
  }
}

}  // namespace

std::uint64_t Timeline::fingerprint() const {
  Fingerprint hash;
  hash.add(spans_.size());
  for (const Span& span : spans_) {
    add_span(hash, names_, span);
  }
  for (const StepMark& step : steps_) {
    hash.add_signed(step.time);
    hash.add_signed(step.rank);
    hash.add_signed(step.number);
  }
  return hash.value();
}

}  // namespace rollcall

#include "viz/chrome_trace.h"

// The format is Google's "Trace Event Format" document; what readers make of it was seen in
// Perfetto's importer (src/trace_processor/importers/json) and is the reason for most of the rules:
//
//   pid = rank, tid from 1        tid 0 in a process other than 0 is taken for another process
//   times as integer "us.nnn"     a double loses nanoseconds
//   slices are X, on lanes        crossing slices of one lane are dropped
//   open calls are B without E    the reader then knows that they did not end; an X needs an end
//   flows: s, then f, bp "e"      with one integer id, category and name, else the arrow is lost
//   events in order of time       an arrow whose end is read first is lost
//
// Argument names are those of Kineto's communication slices, so that scripts for real traces work.

#include <algorithm>
#include <deque>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "viz/trace_arrows.h"
#include "viz/trace_lanes.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

// The inside of a JSON string: what stands between the quotes.
std::string escaped(const std::string& text) {
  const std::string quoted = json_text(text);
  return quoted.substr(1, quoted.size() - 2);
}

// Of ASCII letters; verdict words have no others, and locales do not matter.
char upper_case(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

// Kineto writes c10d's names of collectives.
std::string kineto_name(const std::string& op) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"all_reduce", "allreduce"},
      {"all_gather", "allgather"},
      {"all_gather_into_tensor", "_allgather_base"},
      {"reduce_scatter_tensor", "_reduce_scatter_base"},
      {"all_to_all_single", "all_to_allv"},
  };
  for (const auto& [torch, kineto] : names) {
    if (op == torch) {
      return std::string(kineto);
    }
  }
  return op;
}

// A name of the timeline, ready to be written.
struct Name {
  std::string plain;
  std::string kineto;
  bool known = false;
};

class TraceWriter {
 public:
  TraceWriter(const Report& report, std::ostream& out)
      : report_(report),
        spans_(report.timeline.spans()),
        lanes_(assign_lanes(report.timeline, report.world_size)),
        out_(out) {}

  void write() {
    header();
    metadata();
    events();
    verdict_marks();
    append("\n]}\n");
    flush();
  }

 private:
  // No "rank": tools that read one file per rank would take this one for that rank's.
  void header() {
    Json ranks = Json::array();
    for (Rank rank = 0; rank < report_.world_size; ++rank) {
      ranks.push_back(rank);
    }
    const Json world = {
        {"pg_name", "world"}, {"pg_desc", "default_pg"}, {"pg_size", report_.world_size}, {"ranks", ranks}};
    const Json info = {{"backend", report_.backend},
                       {"world_size", report_.world_size},
                       {"pg_count", 1},
                       {"pg_config", Json::array({world})}};
    const Json about = {{"scenario", report_.scenario},
                        {"seed", std::to_string(report_.seed)},
                        {"verdict", verdict_word(report_.verdict)},
                        {"replay", report_.replay}};
    append(fmt::format(
        "{{\"schemaVersion\":1,\"deviceProperties\":[],\n\"distributedInfo\":{},\n\"metadata\":{},\n"
        "\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":0,\n\"traceEvents\":[",
        json_text(info), json_text(about)));
  }

  void metadata() {
    const Finding* finding = finding_of(report_.verdict);
    for (Rank rank = 0; rank < report_.world_size; ++rank) {
      const bool is_culprit = finding != nullptr && finding->culprits.contains(rank);
      begin_event(FMT_COMPILE(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}{}"}}}})"),
                  rank, rank, is_culprit ? " (culprit)" : "");
      begin_event(
          FMT_COMPILE(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})"),
          rank, rank);
    }
    for (const TraceLanes::Lane& lane : lanes_.lanes) {
      begin_event(
          FMT_COMPILE(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})"),
          lane.rank, lane.id, escaped(lane.name));
      begin_event(
          FMT_COMPILE(
              R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})"),
          lane.rank, lane.id, lane.id);
    }
  }

  // Slices and arrows are both sorted by time; this merges them, a slice before an arrow in it.
  void events() {
    const std::vector<TraceArrow> arrows = waiting_arrows(report_.timeline);
    auto arrow = arrows.begin();
    for (const std::uint32_t index : lanes_.order) {
      for (; arrow != arrows.end() && arrow->time < spans_[index].start; ++arrow) {
        flow(*arrow);
      }
      slice(index);
    }
    for (; arrow != arrows.end(); ++arrow) {
      flow(*arrow);
    }
  }

  void slice(std::uint32_t index) {
    const Span& span = spans_[index];
    const bool is_open = span.end == Span::open;
    const bool is_collective = span.kind == Span::Kind::collective;
    begin_event(FMT_COMPILE(R"({{"ph":"{}","cat":"{}","name":"{}{})"), is_open ? 'B' : 'X',
                is_collective ? "collective" : "compute", is_open ? "wait " : "", name(span.name).plain);
    if (is_collective) {
      add(FMT_COMPILE(" #{}"), span.seq);
    }
    add(FMT_COMPILE(R"(","pid":{},"tid":{},"ts":{}.{:03})"), span.rank, lanes_.lane_of[index],
        span.start / microsecond, span.start % microsecond);
    if (!is_open) {
      const Duration duration = span.end - span.start;
      add(FMT_COMPILE(R"(,"dur":{}.{:03})"), duration / microsecond, duration % microsecond);
    }
    arguments(span, is_collective);
    append("}");
  }

  void arguments(const Span& span, bool is_collective) {
    if (is_collective) {
      add(FMT_COMPILE(R"(,"args":{{"Collective name":"{}","In msg nelems":{},"dtype":"{}")"),
          name(span.name).kineto, span.numel, scalar_type_name(span.dtype));
      add(FMT_COMPILE(R"(,"Process Group Name":"{}","Seq":{})"), name(span.group).plain, span.seq);
      origin(",", "label", span.label);
      origin(",", "site", span.site);
      append("}");
    } else if (span.site != 0) {
      append(R"(,"args":{)");
      origin("", "site", span.site);
      append("}");
    }
  }

  void origin(std::string_view comma, std::string_view key, std::uint32_t index) {
    if (index != 0) {
      add(FMT_COMPILE(R"({}"{}":"{}")"), comma, key, name(index).plain);
    }
  }

  void flow(const TraceArrow& arrow) {
    ++flow_id_;
    flow_end('s', "", arrow.from, arrow.time);
    for (const std::uint32_t index : arrow.to) {
      flow_end('f', R"("bp":"e",)", index, arrow.time);
    }
  }

  void flow_end(char phase, std::string_view binding, std::uint32_t index, Time time) {
    begin_event(
        FMT_COMPILE(
            R"({{"ph":"{}",{}"cat":"waits","name":"came last","id":{},"pid":{},"tid":{},"ts":{}.{:03}}})"),
        phase, binding, flow_id_, spans_[index].rank, lanes_.lane_of[index], time / microsecond,
        time % microsecond);
  }

  // "DEADLOCK" at the end of every call that did not return.
  void verdict_marks() {
    std::string word(verdict_word(report_.verdict));
    std::transform(word.begin(), word.end(), word.begin(), upper_case);
    Time end = report_.simulated_time;
    for (const Span& span : spans_) {
      end = std::max({end, span.start, span.end});
    }
    for (const std::uint32_t index : lanes_.order) {
      const Span& span = spans_[index];
      if (span.end == Span::open) {
        begin_event(
            FMT_COMPILE(
                R"({{"ph":"i","s":"t","cat":"verdict","name":"{}","pid":{},"tid":{},"ts":{}.{:03}}})"),
            word, span.rank, lanes_.lane_of[index], end / microsecond, end % microsecond);
      }
    }
  }

  const Name& name(std::uint32_t index) {
    if (index >= names_.size()) {
      names_.resize(index + 1);
    }
    Name& entry = names_[index];
    if (!entry.known) {
      const std::string& text = report_.timeline.name(index);
      entry = {escaped(text), escaped(kineto_name(text)), true};
    }
    return entry;
  }

  template <typename Format, typename... Args>
  void begin_event(const Format& format, const Args&... args) {
    append(is_first_event_ ? "\n" : ",\n");
    is_first_event_ = false;
    add(format, args...);
  }

  template <typename Format, typename... Args>
  void add(const Format& format, const Args&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, args...);
    flush_when_full();
  }

  void append(std::string_view text) {
    buffer_.append(text.data(), text.data() + text.size());
    flush_when_full();
  }

  void flush_when_full() {
    if (buffer_.size() > buffer_limit) {
      flush();
    }
  }

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  static constexpr std::size_t buffer_limit = 1 << 16;

  const Report& report_;
  const std::vector<Span>& spans_;
  TraceLanes lanes_;
  std::ostream& out_;
  fmt::memory_buffer buffer_;
  std::deque<Name> names_;  // by index in the timeline, filled when first needed; entries never move
  std::int64_t flow_id_ = 0;
  bool is_first_event_ = true;
};

}  // namespace

void chrome_trace(const Report& report, std::ostream& out) { TraceWriter(report, out).write(); }

}  // namespace rollcall::viz

#include "sim/report/verdict.h"

#include <algorithm>
#include <utility>

namespace rollcall {

std::string call_phrase(const Call& call) {
  if (!call.key.empty()) {
    return call.op + "(" + call.key + ")";
  }
  return call.op + " #" + std::to_string(call.seq) + " on " + call.group;
}

namespace {

// True if `lines`, such as "train.py:61/70" or "train.py:61/eval.py:9", has the line.
bool names_line(std::string_view lines, std::string_view file_and_line) {
  std::string_view file;
  while (!lines.empty()) {
    const std::string_view each = lines.substr(0, lines.find('/'));
    lines.remove_prefix(std::min(each.size() + 1, lines.size()));
    const std::size_t colon = each.rfind(':');
    file = colon == std::string_view::npos ? file : each.substr(0, colon);
    const std::string_view number = colon == std::string_view::npos ? each : each.substr(colon + 1);
    if (file_and_line.size() == file.size() + 1 + number.size() && file_and_line.starts_with(file) &&
        file_and_line.ends_with(number) && file_and_line[file.size()] == ':') {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view label_beside_site(std::string_view label, std::string_view site) {
  const std::string_view file_and_line = site.substr(site.rfind('/') + 1);
  if (file_and_line.empty()) {
    return label;
  }
  const std::size_t open = label.rfind(" (");
  if (open == std::string_view::npos || !label.ends_with(')')) {
    return names_line(label, file_and_line) ? "" : label;
  }
  const std::string_view lines = label.substr(open + 2, label.size() - open - 3);
  return names_line(lines, file_and_line) ? label.substr(0, open) : label;
}

namespace {

// What verdict_word needs per alternative: a forgotten one does not compile.
struct Word {
  std::string_view operator()(const Completed&) const { return "ok"; }
  std::string_view operator()(const Deadlock&) const { return "deadlock"; }
  std::string_view operator()(const Mismatch&) const { return "mismatch"; }
  std::string_view operator()(const DeviceMismatch&) const { return "device_mismatch"; }
  std::string_view operator()(const WrongResult&) const { return "wrong_result"; }
  std::string_view operator()(const Race&) const { return "race"; }
  std::string_view operator()(const ResourceLeak&) const { return "resource_leak"; }
  std::string_view operator()(const RankFailed&) const { return "rank_failed"; }
  std::string_view operator()(const LimitReached&) const { return "limit_reached"; }
};

struct FindingOf {
  const Finding* operator()(const Completed&) const { return nullptr; }
  template <typename Unhappy>
  const Finding* operator()(const Unhappy& verdict) const {
    return &verdict.finding;
  }
};

}  // namespace

std::string_view verdict_word(const Verdict& verdict) { return std::visit(Word{}, verdict); }

const Finding* finding_of(const Verdict& verdict) { return std::visit(FindingOf{}, verdict); }

Finding* finding_of(Verdict& verdict) { return const_cast<Finding*>(finding_of(std::as_const(verdict))); }

FindingKind kind_of(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  return finding != nullptr ? finding->kind : FindingKind::ok;
}

std::string verdict_phrase(std::string_view verdict, FindingKind kind) {
  std::string text(verdict);
  return kind == FindingKind::ok ? text : text.append(" (").append(to_string(kind)).append(")");
}

std::string_view to_string(Repair::Search search) {
  switch (search) {
    case Repair::Search::complete:
      return "complete";
    case Repair::Search::cut_short:
      return "cut_short";
    case Repair::Search::too_large:
      return "too_large";
  }
  return "complete";
}

}  // namespace rollcall

#include "viz/text/text_diagnosis.h"

#include <algorithm>

#include <fmt/core.h>

#include "viz/base/text_page.h"
#include "viz/rows/diagnosis_parts.h"
#include "viz/rows/phrases.h"
#include "viz/rows/source_rows.h"
#include "viz/rows/variants_table.h"
#include "viz/rows/verdict_parts.h"
#include "viz/text/excerpts.h"

namespace rollcall::viz {

namespace {

// The number of rows of each list without -v.
constexpr std::size_t victims_max = 12;
constexpr std::size_t sentences_max = 6;

class DiagnosisWriter {
 public:
  DiagnosisWriter(const Diagnosis& diagnosis, const TextStyle& style)
      : diagnosis_(diagnosis),
        verbose_(style.detail == TextStyle::Detail::verbose),
        page_(style.color, style.width) {}

  std::string quiet() {
    headline(&TextPage::sentence);
    return page_.text();
  }

  std::string full() {
    headline(&TextPage::headline);
    const Finding& finding = diagnosis_.finding;
    if (finding.at && !finding.at->call.site.empty()) {
      page_.arrow(path_of_site(diagnosis_.sources, finding.at->call.site));
    }
    frame();
    page_.note_unless_empty("group", group_phrase(diagnosis_));
    steps();
    page_.note_unless_empty("cause", finding.cause);
    page_.note_unless_empty("help", finding.advice);
    page_.note_unless_empty("repair", repair_phrase(finding, replay_proof));
    sentences("evidence", diagnosis_.evidence);
    page_.note_unless_empty("confidence", confidence_phrase(diagnosis_));
    sentences("to settle it", diagnosis_.would_settle);
    page_.note_unless_empty("read", records_phrase(diagnosis_));
    return page_.text();
  }

 private:
  bool is_fault() const { return diagnosis_.finding.kind != FindingKind::no_fault; }

  void headline(void (TextPage::*put)(std::string_view, Look, std::string_view)) {
    const bool is_mild = diagnosis_.finding.kind == FindingKind::straggler || diagnosis_.may_be_healthy;
    const std::string_view level = diagnosis_.may_be_healthy ? "undecided" : is_mild ? "warning" : "error";
    const std::string word = is_fault() ? fmt::format("{}[{}]", level, to_string(diagnosis_.finding.kind))
                                        : std::string(diagnosis_.may_be_healthy ? level : "ok");
    const Look look = is_mild ? Look::warning : is_fault() ? Look::error : Look::good;
    (page_.*put)(word, look, diagnosis_.finding.headline);
  }

  void frame() {
    const std::string site = diagnosis_.finding.at ? diagnosis_.finding.at->call.site : "";
    const bool has_excerpt = source_of(diagnosis_.sources, site) != nullptr;
    const bool has_rows =
        !diagnosis_.victims.empty() || !diagnosis_.held.empty() || !diagnosis_.variants.empty();
    if (has_excerpt || has_rows) {
      page_.frame_line();
    }
    if (has_excerpt) {
      put_excerpts(page_, diagnosis_.sources, site);
    }
    if (!has_rows) {
      return;
    }
    if (!diagnosis_.variants.empty()) {
      const std::size_t count = verbose_ ? diagnosis_.variants.size() : variants_max;
      std::vector<Variant> shown = diagnosis_.variants;
      shown.resize(std::min(shown.size(), count));
      page_.frame_table(variants_table(shown, diagnosis_.finding.culprits));
      page_.frame_line();
    }
    waits();
  }

  // Culprits in a cycle wait as well. The ranks that meet in the broken call are already in the
  // table.
  void waits() {
    std::vector<Row> rows;
    const auto add = [&rows](const std::vector<Victim>& all, Look look) {
      for (const Victim& each : all) {
        if (!each.waits_for.empty()) {
          rows.push_back(
              {ranks_phrase(each.ranks),
               fmt::format("waiting in {}, for {}", call_phrase(each.call), ranks_phrase(each.waits_for)),
               look});
        }
      }
    };
    add(diagnosis_.held, Look::error);
    add(diagnosis_.victims, Look::plain);
    if (rows.empty()) {
      return;
    }
    cut(rows, victims_max, "wait");
    page_.frame_rows(rows);
    page_.frame_line();
  }

  void cut(std::vector<Row>& rows, std::size_t most, std::string_view noun) const {
    if (!verbose_ && rows.size() > most) {
      const auto hidden = static_cast<std::int64_t>(rows.size() - (most - 1));
      rows.resize(most - 1);
      rows.push_back({"...", fmt::format("{} more; -v shows all", count_phrase(hidden, noun)), Look::faint,
                      Look::faint});
    }
  }

  void steps() {
    const std::vector<std::string>& chain = diagnosis_.finding.chain;
    if (chain.size() < 2) {
      return;
    }
    page_.note("chain", "who waits for whom, back to the cause");
    std::vector<Row> rows;
    for (const std::string& step : chain) {
      rows.push_back({"", step});
    }
    if (!verbose_ && rows.size() > steps_max) {
      rows.erase(rows.begin(), rows.end() - steps_max);
    }
    page_.rows(rows, list_indent);
  }

  void sentences(std::string_view key, const std::vector<std::string>& texts) {
    const std::size_t count = verbose_ ? texts.size() : std::min(texts.size(), sentences_max);
    for (std::size_t i = 0; i < count; ++i) {
      page_.note(key, texts[i]);
    }
    if (count < texts.size()) {
      page_.note(key, fmt::format("and {} more, which --verbose shows", texts.size() - count));
    }
  }

  const Diagnosis& diagnosis_;
  bool verbose_;
  TextPage page_;
};

}  // namespace

std::string text_diagnosis(const Diagnosis& diagnosis, const TextStyle& style) {
  DiagnosisWriter writer(diagnosis, style);
  return style.detail == TextStyle::Detail::quiet ? writer.quiet() : writer.full();
}

}  // namespace rollcall::viz

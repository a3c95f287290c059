#include "viz/text/text_report.h"

#include <fmt/core.h>

#include "viz/base/text_page.h"
#include "viz/rows/output_groups.h"
#include "viz/rows/phrases.h"
#include "viz/rows/source_rows.h"
#include "viz/rows/state_rows.h"
#include "viz/rows/variants_table.h"
#include "viz/rows/verdict_parts.h"
#include "viz/text/excerpts.h"

namespace rollcall::viz {

namespace {

// The number of rows of each list without -v.
constexpr std::size_t states_max = 12;
constexpr std::size_t output_max = 20;
constexpr std::size_t contexts_max = 2;

// The last call on the broken group that all members took part in.
const Call* last_common_call(const Report& report, const Place& place) {
  for (const RankClass& ranks : report.ranks) {
    const bool is_there =
        ranks.call && ranks.call->group == place.call.group && ranks.call->seq == place.call.seq;
    if (is_there && ranks.last_completed) {
      return &*ranks.last_completed;
    }
  }
  return nullptr;
}

class ReportWriter {
 public:
  ReportWriter(const Report& report, const TextStyle& style)
      : report_(report),
        verbose_(style.detail == TextStyle::Detail::verbose),
        page_(style.color, style.width) {}

  std::string quiet() {
    headline(&TextPage::sentence);
    return page_.text();
  }

  std::string full() {
    headline(&TextPage::headline);
    if (const Finding* finding = finding_of(report_.verdict)) {
      failure(*finding);
    } else {
      success();
    }
    result();
    return page_.text();
  }

 private:
  void headline(void (TextPage::*put)(std::string_view, Look, std::string_view)) {
    if (const Finding* finding = finding_of(report_.verdict)) {
      (page_.*put)(fmt::format("error[{}]", verdict_word(report_.verdict)), Look::error, finding->headline);
    } else {
      const std::string name = report_.scenario.empty() ? "" : report_.scenario + ": ";
      if (report_.schedules == 0) {
        (page_.*put)("not run", Look::plain, name + "none of its schedules");
      } else {
        (page_.*put)("ok", Look::good, name + success_phrase(report_));
      }
    }
  }

  void success() {
    if (verbose_) {
      page_.frame_line();
      page_.frame_rows(state_rows(report_, {}, 0));
      page_.frame_line();
      printed();
      costs();
      run_facts();
      replay();
    } else {
      output(2);
      costs();
    }
    if (report_.search) {
      search(*report_.search);
    } else if (!verbose_ && !report_.exhaustive && !report_.measured) {
      schedules();
    }
  }

  void failure(const Finding& finding) {
    if (const std::string place = place_to_look(report_.verdict); !place.empty()) {
      page_.arrow(path_of_site(report_.sources, place));
    }
    page_.frame_line();
    put_excerpts(page_, report_.sources, place_to_look(report_.verdict));
    evidence(finding);
    if (finding.at && !std::holds_alternative<ResourceLeak>(report_.verdict)) {
      last_common(*finding.at);
    }
    if (finding.first_divergence) {
      divergence(*finding.first_divergence);
    }
    chain(finding.chain);
    if (!report_.search) {
      page_.note_unless_empty("schedules", outcomes_phrase(report_));
    }
    explanation(finding);
    printed();
    costs();
    if (report_.search) {
      search(*report_.search);
    } else if (verbose_) {
      run_facts();
    }
    replay();
  }

  // The calls side by side if there is something to compare, then the ranks that are elsewhere.
  void evidence(const Finding& finding) {
    RankSet shown;
    if (const std::vector<Variant>* variants = variants_of(report_.verdict); variants && !variants->empty()) {
      shown = compare(*variants, finding.culprits);
    }
    if (const std::vector<TensorPlace>* tensors = tensors_of(report_.verdict); tensors && !tensors->empty()) {
      page_.frame_rows(tensor_rows(*tensors));
      page_.frame_line();
    }
    const std::vector<Row> rows =
        state_rows(report_, verbose_ ? RankSet() : shown, verbose_ ? 0 : states_max);
    if (!rows.empty()) {
      page_.frame_rows(rows);
      page_.frame_line();
    }
  }

  std::vector<Row> tensor_rows(const std::vector<TensorPlace>& tensors) const {
    std::vector<Row> rows;
    for (const TensorPlace& place : tensors) {
      const std::string at = place.site.empty() ? "" : " at " + place.site;
      rows.push_back({ranks_phrase(place.ranks), tensor_phrase(place, kind_of(report_.verdict)) + at});
      if (!verbose_ && rows.size() == states_max && tensors.size() > states_max) {
        rows.back() = more_row(tensors.size() - states_max + 1, "value");
        break;
      }
    }
    return rows;
  }

  // Returns the ranks it showed.
  RankSet compare(const std::vector<Variant>& variants, const RankSet& culprits) {
    const bool cut = !verbose_ && variants.size() > variants_max;
    const std::vector<Variant> shown(variants.begin(),
                                     cut ? variants.begin() + variants_max - 1 : variants.end());
    page_.frame_table(variants_table(shown, culprits, variants_style(report_.verdict)));
    if (cut) {
      page_.frame_rows({more_row(variants.size() - shown.size(), "variant")});
    }
    page_.frame_line();
    splits();
    RankSet ranks;
    for (const Variant& variant : variants) {
      ranks.insert(variant.ranks);
    }
    return ranks;
  }

  // The pairs of ranks that disagree about what one sends to the other.
  void splits() {
    const auto* mismatch = std::get_if<Mismatch>(&report_.verdict);
    if (mismatch == nullptr || mismatch->splits.empty()) {
      return;
    }
    std::vector<Row> rows;
    for (const SplitPair& pair : mismatch->splits) {
      rows.push_back({fmt::format("rank {} to rank {}", pair.sender, pair.receiver),
                      fmt::format("sends {}; rank {} expects {}", count_phrase(pair.sent, "element"),
                                  pair.receiver, pair.expected)});
    }
    shorten(rows, variants_max, "pair");
    page_.frame_rows(rows);
    page_.frame_line();
  }

  void last_common(const Place& place) {
    if (const Call* call = last_common_call(report_, place)) {
      page_.note("last common call", call_phrase(*call));
    } else if (place.call.seq == 0 && !place.call.group.empty()) {
      page_.note("last common call", "none, this is the first on " + place.call.group);
    }
  }

  void divergence(const Divergence& divergence) {
    page_.note("first divergence",
               fmt::format("collective #{} on {} paired calls that do not belong together", divergence.seq,
                           divergence.group));
    std::vector<Row> rows;
    for (const Variant& variant : divergence.variants) {
      rows.push_back({ranks_phrase(variant.ranks), variant.call.op + call_origin(variant.call)});
    }
    shorten(rows, variants_max, "variant");
    page_.steps(rows, list_indent);
  }

  void chain(const std::vector<std::string>& steps) {
    if (steps.empty()) {
      return;
    }
    page_.note("who waits for whom", "");
    std::vector<Row> rows;
    for (const std::string& step : steps) {
      rows.push_back({std::to_string(rows.size() + 1) + ".", step});
    }
    shorten(rows, steps_max, "step");
    page_.steps(rows, list_indent);
  }

  void search(const SearchResult& search) {
    page_.note("schedules", search_phrase(report_, search));
    for (const std::string& bound : search.bounds) {
      page_.note("not all", bound);
    }
    if (search.failures.size() == 1 && !verbose_) {
      return;  // it is the one shown above
    }
    for (const FoundFailure& failure : search.failures) {
      page_.note("found", fmt::format("{} x {}: {}", failure.count,
                                      verdict_phrase(failure.verdict, failure.kind), failure.headline));
      page_.line("  again", failure.replay);
    }
  }

  void explanation(const Finding& finding) {
    if (finding.tie) {
      page_.note("tie", tie_phrase(finding));
    } else {
      page_.note_unless_empty("likelier", finding.suspicion);
    }
    page_.note_unless_empty("cause", finding.cause);
    page_.note_unless_empty("help", finding.advice);
    page_.note_unless_empty("repair", repair_phrase(finding, run_proof(report_)));
    page_.note_unless_empty("on " + report_.backend, finding.on_backend);
  }

  void printed() {
    if (!report_.output.empty()) {
      page_.note("printed", "");
      output(list_indent);
    }
  }

  // The cost of uneven inputs, and of evening them out.
  void costs() {
    if (report_.samples) {
      page_.note("samples", samples_phrase(*report_.samples));
      for (const std::string& bias : sample_biases(*report_.samples)) {
        page_.note("bias", bias);
      }
    }
    for (const MemoryUse& use : report_.memory) {
      memory(use);
    }
    std::size_t shown = 0;
    for (const JoinCost& cost : report_.joins) {
      if (cost.is_uneven() && (verbose_ || shown++ < contexts_max)) {
        join(cost);
      }
    }
    if (!verbose_ && shown > contexts_max) {
      page_.note("join",
                 fmt::format("{} more contexts with uneven inputs; -v shows them", shown - contexts_max));
    }
  }

  // GPUs that hold the same amount share a line.
  void memory(const MemoryUse& use) {
    page_.note("memory", memory_phrase(use));
    std::vector<Row> rows;
    for (std::size_t first = 0, end = 0; first < use.devices.size(); first = end) {
      end = first + 1;
      while (end < use.devices.size() && use.devices[end] == use.devices[first]) {
        ++end;
      }
      const std::string last = end == first + 1 ? "" : fmt::format("-{}", end - 1);
      rows.push_back({fmt::format("cuda:{}{}", first, last), device_memory_phrase(use.devices[first])});
    }
    shorten(rows, states_max, "row");
    page_.steps(rows, list_indent);
  }

  void join(const JoinCost& cost) {
    page_.note("join", join_phrase(cost));
    std::vector<Row> rows;
    for (const JoinedRanks& ranks : cost.ranks) {
      if (ranks.steps < cost.steps) {
        rows.push_back({ranks_phrase(ranks.ranks), joined_phrase(ranks, cost.run)});
      }
    }
    shorten(rows, states_max, "row");
    page_.steps(rows, list_indent);
    page_.note("instead", cost.advice());
  }

  void output(std::size_t indent) {
    std::vector<Row> rows;
    for (const OutputGroup& group : group_output(report_.output)) {
      rows.push_back(
          {ranks_phrase(group.ranks), group.text, Look::faint, group.warning ? Look::warning : Look::plain});
    }
    shorten(rows, output_max, "line");
    page_.rows(rows, indent);
  }

  void shorten(std::vector<Row>& rows, std::size_t most, std::string_view noun) const {
    if (!verbose_ && rows.size() > most) {
      const std::size_t hidden = rows.size() - (most - 1);
      rows.resize(most - 1);
      rows.push_back(more_row(hidden, noun));
    }
  }

  void run_facts() {
    page_.note("run", run_phrase(report_));
    schedules();
  }

  void schedules() {
    page_.note("schedules",
               report_.exhaustive || report_.measured
                   ? timing_phrase(report_)
                   : fmt::format("{}; the search was not exhaustive, and `rollcall explore` tries others",
                                 count_phrase(report_.schedules, "schedule")));
  }

  void replay() {
    if (!report_.replay.empty()) {
      page_.line("replay", report_.replay);
    }
  }

  // Says plainly if a failure was expected, or if a success was not.
  void result() {
    if (!report_.expected) {
      return;
    }
    if (*report_.expected) {
      if (finding_of(report_.verdict) != nullptr || verbose_) {
        page_.line("result", "as expected", Look::good);
      }
      return;
    }
    page_.line("result", "not as expected", Look::error);
    std::vector<Row> rows;
    for (const std::string& sentence : report_.unmet) {
      rows.push_back({"", "- " + sentence});
    }
    page_.steps(rows, 2);
  }

  const Report& report_;
  bool verbose_;
  TextPage page_;
};

}  // namespace

std::string text_report(const Report& report, const TextStyle& style) {
  ReportWriter writer(report, style);
  return style.detail == TextStyle::Detail::quiet ? writer.quiet() : writer.full();
}

}  // namespace rollcall::viz

#include "viz/traces/chrome_trace.h"

// The format is Google's "Trace Event Format" document. Most of the rules follow from how Perfetto's importer
// (src/trace_processor/importers/json) treats it:
//
//   pid = rank, tid from 1        tid 0 in a process other than 0 is taken for another process
//   times as integer "us.nnn"     a double loses nanoseconds
//   slices are X, on lanes        crossing slices of one lane are dropped
//   open calls are B without E    the reader then knows that they did not end; an X needs an end
//   flows: s, then f, bp "e"      with one integer id, category, and name, otherwise the arrow is lost
//   events in order of time       an arrow whose end is read first is lost
//
// Argument names are those of Kineto's communication slices, so that scripts for real traces work.

#include <array>
#include <deque>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "viz/traces/trace_groups.h"
#include "viz/traces/trace_text.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

// A name of the timeline, ready to be written.
struct Name {
  std::string plain;
  std::string kineto;
  bool known = false;
};

// By Span::Kind.
constexpr std::array<std::string_view, 4> categories = {"collective", "compute", "message", "host"};

// The category of notes about a run that are not part of it. Readers skip them.
constexpr std::string_view verdict_category = "verdict";

class TraceWriter {
 public:
  TraceWriter(const Report& report, std::ostream& out, const TraceOptions& options)
      : report_(report),
        spans_(report.timeline.spans()),
        plan_(plan_trace(report, options)),
        groups_(trace_groups(report)),
        notes_from_(options.notes_from),
        text_(out, options.whole_microseconds) {}

  void write() {
    header();
    metadata();
    events();
    verdict_marks();
    text_.append("\n]}\n");
  }

 private:
  // Writes no "rank": tools that read one file per rank would take this file for that rank's.
  void header() {
    const Json about = {{"scenario", report_.scenario},
                        {"seed", std::to_string(report_.seed)},
                        {"verdict", verdict_word(report_.verdict)},
                        {"replay", report_.replay}};
    text_.append("{\"schemaVersion\":1,\"deviceProperties\":[],\n\"distributedInfo\":");
    text_.append(distributed_info(report_, -1));
    text_.append(",\n\"metadata\":");
    text_.append(about.dump(-1, ' ', true, Json::error_handler_t::replace));
    text_.append(",\n\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":0,\n\"traceEvents\":[");
  }

  void metadata() {
    const Finding* finding = finding_of(report_.verdict);
    for (const Rank rank : plan_.ranks) {
      const bool is_culprit = finding != nullptr && finding->culprits.contains(rank);
      text_.begin_event(
          FMT_COMPILE(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}{}"}}}})"), rank,
          rank, is_culprit ? " (culprit)" : "");
      text_.begin_event(
          FMT_COMPILE(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})"),
          rank, rank);
    }
    for (const TraceLanes::Lane& lane : plan_.lanes.lanes) {
      text_.begin_event(
          FMT_COMPILE(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})"),
          lane.rank, lane.id, escaped(lane.name));
      text_.begin_event(
          FMT_COMPILE(
              R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})"),
          lane.rank, lane.id, lane.id);
    }
  }

  // Slices and arrows are both sorted by time; this merges them, with a slice before the arrows in it.
  void events() {
    auto arrow = plan_.arrows.begin();
    for (const std::uint32_t index : plan_.lanes.order) {
      for (; arrow != plan_.arrows.end() && arrow->time < spans_[index].start; ++arrow) {
        flow(*arrow);
      }
      slice(index);
    }
    for (; arrow != plan_.arrows.end(); ++arrow) {
      flow(*arrow);
    }
  }

  void slice(std::uint32_t index) {
    const Span& span = spans_[index];
    const bool is_open = span.end == Span::open;
    text_.begin_event(
        FMT_COMPILE(R"({{"ph":"{}","cat":"{}","name":"{}{})"), is_open ? 'B' : 'X',
        index >= notes_from_ ? verdict_category : categories[static_cast<std::size_t>(span.kind)],
        is_open ? "wait " : "", name(span.name).plain);
    if (span.kind == Span::Kind::collective) {
      text_.add(FMT_COMPILE(" #{}"), span.seq);
    }
    text_.add(FMT_COMPILE(R"(","pid":{},"tid":{})"), span.rank, plan_.lanes.lane_of[index]);
    text_.add_start(span.start);
    if (!is_open) {
      text_.add_duration(span.start, span.end);
    }
    arguments(span);
    text_.append("}");
  }

  void arguments(const Span& span) {
    if (!span.moves_data()) {
      local_arguments(span);
      return;
    }
    const std::int64_t group_size = groups_[span.group].size;
    text_.add(FMT_COMPILE(R"(,"args":{{"Collective name":"{}","In msg nelems":{},"Out msg nelems":{})"),
              name(span.name).kineto, span.numel,
              numel_out(report_.timeline.name(span.name), span.numel, group_size));
    text_.add(FMT_COMPILE(R"(,"Group size":{},"dtype":"{}","Process Group Name":"{}","Seq":{})"), group_size,
              scalar_type_name(span.dtype), name(span.group).plain, span.seq);
    if (span.peer >= 0) {
      const bool sends = name(span.name).plain == "send";
      text_.add(FMT_COMPILE(R"(,"Src Rank":{},"Dst Rank":{})"), sends ? span.rank : span.peer,
                sends ? span.peer : span.rank);
    }
    origin(",", "arguments", span.arguments);
    origin(",", "label", span.label);
    origin(",", "site", span.site);
    text_.append("}");
  }

  // The arguments of spans that move no data.
  void local_arguments(const Span& span) {
    const std::pair<std::string_view, std::uint32_t> known[] = {
        {"Process Group Name", span.kind == Span::Kind::host ? span.group : 0},
        {"arguments", span.arguments},
        {"label", span.label},
        {"site", span.site}};
    std::string_view before = R"(,"args":{)";
    for (const auto& [key, index] : known) {
      if (index != 0) {
        origin(std::exchange(before, ","), key, index);
      }
    }
    text_.append(before == "," ? "}" : "");
  }

  void origin(std::string_view comma, std::string_view key, std::uint32_t index) {
    if (index != 0) {
      text_.add(FMT_COMPILE(R"({}"{}":"{}")"), comma, key, name(index).plain);
    }
  }

  void flow(const TraceArrow& arrow) {
    ++flow_id_;
    const std::string_view name = arrow.is_vain ? "waits in vain" : "came last";
    flow_end('s', "", name, arrow.from, arrow.time);
    for (const std::uint32_t index : arrow.to) {
      flow_end('f', R"("bp":"e",)", name, index, arrow.time);
    }
  }

  void flow_end(char phase, std::string_view binding, std::string_view name, std::uint32_t index, Time time) {
    text_.begin_event(FMT_COMPILE(R"({{"ph":"{}",{}"cat":"waits","name":"{}","id":{},"pid":{},"tid":{})"),
                      phase, binding, name, flow_id_, spans_[index].rank, plan_.lanes.lane_of[index]);
    text_.add_start(time);
    text_.append("}");
  }

  void verdict_marks() {
    const std::string word = verdict_mark(report_);
    for (const std::uint32_t index : plan_.lanes.order) {
      const Span& span = spans_[index];
      if (span.end == Span::open) {
        text_.begin_event(FMT_COMPILE(R"({{"ph":"i","s":"t","cat":"verdict","name":"{}","pid":{},"tid":{})"),
                          word, span.rank, plan_.lanes.lane_of[index]);
        text_.add_start(plan_.end);
        text_.append("}");
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

  const Report& report_;
  const std::vector<Span>& spans_;
  TracePlan plan_;
  std::vector<TraceGroup> groups_;  // by index of the group's name
  std::size_t notes_from_;          // spans from this index on are not calls
  TraceText text_;
  std::deque<Name> names_;  // by index in the timeline, filled when first needed; entries never move
  std::int64_t flow_id_ = 0;
};

}  // namespace

void chrome_trace(const Report& report, std::ostream& out, const TraceOptions& options) {
  const TracedReport traced(report, options);
  TraceWriter(traced.report(), out, traced.options()).write();
}

}  // namespace rollcall::viz

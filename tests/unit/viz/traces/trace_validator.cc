#include "tests/unit/viz/traces/trace_validator.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

namespace rollcall::viz::test {

namespace {

using Json = nlohmann::json;
using Lane = std::pair<std::int64_t, std::int64_t>;  // pid, tid
using Problems = std::vector<std::string>;

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

struct Slice {
  std::int64_t start = 0;
  std::int64_t end = never;
};

// Exact for times below 2^53 ns / 1000; tests stay below that.
std::int64_t nanoseconds(const Json& number) { return std::llround(number.get<double>() * 1000); }

bool is_small_integer(const Json& value, std::int64_t least) {
  return value.is_number_integer() && value.get<std::int64_t>() >= least &&
         value.get<std::int64_t>() <= std::numeric_limits<std::uint32_t>::max();
}

// One pass over the events of a trace.
class Validator {
 public:
  explicit Validator(const std::string& text) : text_(text) {}

  Problems problems() {
    static const std::regex head(R"re(^\{\s*")re");
    if (!std::regex_search(text_, head)) {
      say("does not begin as an object");
    }
    static const std::regex odd_time(R"re("(ts|dur)":\s*-?\d+(\.\d{1,2}\D|\.\d{4,}|[eE]))re");
    if (std::regex_search(text_, odd_time)) {
      say("a time is not written in whole nanoseconds");
    }
    const Json trace = Json::parse(text_, nullptr, false);
    if (trace.is_discarded() || !trace.contains("traceEvents")) {
      say("is not JSON with traceEvents");
      return problems_;
    }
    for (const Json& event : trace["traceEvents"]) {
      check(event);
    }
    check_names();
    check_slices();
    check_flows();
    return problems_;
  }

 private:
  void say(const std::string& problem) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
      problems_.push_back(problem);
    }
  }

  void check(const Json& event) {
    const std::string phase = event.value("ph", "");
    if (!event.contains("pid") || !is_small_integer(event["pid"], 0)) {
      return say("a pid is no integer from 0");
    }
    if (event.contains("tid") && !is_small_integer(event["tid"], 1)) {
      return say("a tid is no integer from 1");
    }
    if (phase == "M") {
      named_.insert({event["pid"], event.contains("tid") ? event["tid"].get<int>() : 0, event["name"]});
      return;
    }
    const std::int64_t time = nanoseconds(event["ts"]);
    if (time < now_) {
      say("events are not in order of time");
    }
    now_ = std::max(now_, time);
    const Lane lane{event["pid"], event["tid"]};
    lanes_.insert(lane);
    if (phase == "X") {
      slices_[lane].push_back({time, time + nanoseconds(event["dur"])});
    } else if (phase == "B") {
      slices_[lane].push_back({time, never});
      open_.insert(lane);
    } else if (phase == "i") {
      marked_.insert(lane);
    } else if (phase == "s" || phase == "f") {
      flow(event, phase, lane, time);
    } else {
      say("a phase is none of M, X, B, i, s, f");
    }
  }

  void flow(const Json& event, const std::string& phase, const Lane& lane, std::int64_t time) {
    if (!event["id"].is_number_integer() || event["id"].get<std::int64_t>() >= (std::int64_t{1} << 53)) {
      return say("a flow's id is no integer below 2^53");
    }
    const std::string key = event["cat"].get<std::string>() + "/" + event["name"].get<std::string>();
    const std::int64_t id = event["id"];
    if (phase == "s") {
      if (!flows_.emplace(id, std::pair(key, time)).second) {
        say("two flows begin with one id");
      }
    } else {
      const auto begun = flows_.find(id);
      if (begun == flows_.end() || begun->second.first != key) {
        say("a flow ends that has not begun under its id, category and name");
      } else if (begun->second.second > time) {
        say("a flow goes back in time");
      }
      if (event.value("bp", "") != "e") {
        say("a flow's end binds to the next slice");
      }
      ended_.insert(id);
    }
    bound_.push_back({lane, time});
  }

  void check_names() {
    for (const Lane& lane : lanes_) {
      for (const char* name : {"process_name", "process_sort_index"}) {
        const auto is_name = [&](const auto& entry) {
          return std::get<0>(entry) == lane.first && std::get<2>(entry) == name;
        };
        if (std::none_of(named_.begin(), named_.end(), is_name)) {
          say(std::string("a process has no ") + name);
        }
      }
      for (const char* name : {"thread_name", "thread_sort_index"}) {
        if (!named_.contains({lane.first, static_cast<int>(lane.second), name})) {
          say(std::string("a thread has no ") + name);
        }
      }
    }
  }

  // The slices of a lane are sorted by start, and each lies within or after the one before.
  void check_slices() {
    for (const auto& [lane, slices] : slices_) {
      std::vector<Slice> around;
      for (const Slice& slice : slices) {
        while (!around.empty() && around.back().end <= slice.start) {
          around.pop_back();
        }
        if (!around.empty() && (slice.end > around.back().end || around.back().end == never)) {
          say(around.back().end == never ? "something follows a call that never returned"
                                         : "slices of one lane cross");
        }
        around.push_back(slice);
      }
    }
    for (const Lane& lane : open_) {
      if (!marked_.contains(lane)) {
        say("a call that never returned is not marked");
      }
    }
  }

  void check_flows() {
    for (const auto& [id, begun] : flows_) {
      if (!ended_.contains(id)) {
        say("a flow begins and does not end");
      }
    }
    for (const auto& [lane, time] : bound_) {
      const auto& slices = slices_[lane];
      const bool inside = std::any_of(slices.begin(), slices.end(), [time = time](const Slice& slice) {
        return slice.start < time && time < slice.end;
      });
      if (!inside) {
        say("a flow touches no slice, or only its edge");
      }
    }
  }

  const std::string& text_;
  Problems problems_;
  std::int64_t now_ = 0;
  std::set<std::tuple<std::int64_t, int, std::string>> named_;
  std::set<Lane> lanes_;
  std::set<Lane> open_;
  std::set<Lane> marked_;
  std::map<Lane, std::vector<Slice>> slices_;
  std::map<std::int64_t, std::pair<std::string, std::int64_t>> flows_;
  std::set<std::int64_t> ended_;
  std::vector<std::pair<Lane, std::int64_t>> bound_;
};

}  // namespace

Problems chrome_trace_problems(const std::string& text) { return Validator(text).problems(); }

Problems kineto_trace_problems(const std::string& text, int rank) {
  Problems problems = Validator(text).problems();
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(R"re("rank":\s+(\d+))re")) || std::stoi(match[1]) != rank) {
    problems.push_back("HTA's pattern does not find the rank");
  }
  if (text.find("\"distributedInfo\"") > text.find("\"traceEvents\"")) {
    problems.push_back("distributedInfo stands behind the events");
  }
  const Json trace = Json::parse(text);
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "user_annotation" &&
        !std::regex_match(event["name"].get<std::string>(), std::regex(R"(ProfilerStep#\d+)"))) {
      problems.push_back("an annotation that HTA does not take for a step");
    }
    if (event.value("cat", "") != "kernel") {
      continue;
    }
    if (!event["args"].contains("stream") || event["args"]["stream"] <= 0) {
      problems.push_back("a kernel has no stream");
    }
    const bool is_communication = event["args"].contains("Collective name");
    if (is_communication != event["name"].get<std::string>().starts_with("nccl")) {
      problems.push_back("a kernel's name does not say whether it communicates");
    }
    if (event["args"].contains("correlation")) {
      problems.push_back("a correlation without a launch");
    }
  }
  return problems;
}

namespace {

using Reader = protozero::pbf_reader;

struct Track {
  int depth = 0;
};

class PerfettoValidator {
 public:
  Problems problems(const std::string& bytes) {
    try {
      Reader trace(bytes);
      while (trace.next()) {
        trace.tag() == 1 ? packet(trace.get_message()) : say("something else than a packet");
      }
    } catch (const protozero::exception& error) {
      say(std::string("is no protobuf: ") + error.what());
    }
    for (const std::uint64_t flow : begun_) {
      if (!ended_.contains(flow)) {
        say("a flow begins and does not end");
      }
    }
    if (!is_cleared_) {
      say("no packet clears the interned state");
    }
    return problems_;
  }

 private:
  void say(const std::string& problem) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
      problems_.push_back(problem);
    }
  }

  void packet(Reader packet) {
    std::uint64_t time = 0;
    std::uint32_t flags = 0;
    bool has_sequence = false;
    Reader event;
    bool has_event = false;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          time = packet.get_uint64();
          break;
        case 10:
          has_sequence = packet.get_uint32() != 0;
          break;
        case 11:
          event = packet.get_message();
          has_event = true;
          break;
        case 12:
          intern(packet.get_message());
          break;
        case 13:
          flags = packet.get_uint32();
          is_cleared_ = is_cleared_ || (flags & 1U) != 0;
          break;
        case 60:
          descriptor(packet.get_message());
          break;
        default:
          say("an unknown field of a packet");
          packet.skip();
      }
    }
    if (!has_sequence) {
      say("a packet belongs to no sequence");
    }
    if (has_event) {
      check(event, static_cast<std::int64_t>(time), flags);
    }
  }

  void intern(Reader data) {
    while (data.next()) {
      const bool is_event = data.tag() == 2;
      Reader entry = data.get_message();
      std::uint64_t number = 0;
      while (entry.next()) {
        entry.tag() == 1 ? void(number = entry.get_uint64()) : entry.skip();
      }
      (is_event ? events_ : annotations_).insert(number);
    }
  }

  void descriptor(Reader track) {
    while (track.next()) {
      if (track.tag() == 1) {
        tracks_.emplace(track.get_uint64(), Track{});
      } else if (track.tag() == 5) {
        if (!tracks_.contains(track.get_uint64())) {
          say("a track's parent comes after it");
        }
      } else {
        track.skip();
      }
    }
  }

  void check(Reader event, std::int64_t time, std::uint32_t flags) {
    if (time < now_) {
      say("events are not in order of time");
    }
    now_ = time;
    std::uint32_t type = 0;
    std::uint64_t uuid = 0;
    while (event.next()) {
      switch (event.tag()) {
        case 4:
          annotation(event.get_message());
          break;
        case 9:
          type = event.get_uint32();
          break;
        case 10:
          if (!events_.contains(event.get_uint64()) || (flags & 2U) == 0) {
            say("a name is used before it is known");
          }
          break;
        case 11:
          uuid = event.get_uint64();
          break;
        case 47:
          if (!begun_.insert(event.get_fixed64()).second) {
            say("two flows begin with one id");
          }
          break;
        case 48: {
          const std::uint64_t flow = event.get_fixed64();
          ended_.insert(flow);
          if (!begun_.contains(flow)) {
            say("a flow ends that has not begun");
          }
          break;
        }
        default:
          event.skip();
      }
    }
    const auto track = tracks_.find(uuid);
    if (track == tracks_.end()) {
      return say("an event is on no track");
    }
    track->second.depth += type == 1 ? 1 : type == 2 ? -1 : 0;
    if (track->second.depth < 0 || track->second.depth > 1) {
      say("begins and ends of a track do not pair");
    }
    if (type == 3 && track->second.depth != 1) {
      say("an instant lies in no slice");
    }
  }

  void annotation(Reader annotation) {
    while (annotation.next()) {
      if (annotation.tag() == 1) {
        if (!annotations_.contains(annotation.get_uint64())) {
          say("an annotation's name is not known");
        }
      } else {
        annotation.skip();
      }
    }
  }

  Problems problems_;
  std::int64_t now_ = 0;
  bool is_cleared_ = false;
  std::set<std::uint64_t> events_;
  std::set<std::uint64_t> annotations_;
  std::map<std::uint64_t, Track> tracks_;
  std::set<std::uint64_t> begun_;
  std::set<std::uint64_t> ended_;
};

}  // namespace

Problems perfetto_trace_problems(const std::string& bytes) { return PerfettoValidator().problems(bytes); }

}  // namespace rollcall::viz::test

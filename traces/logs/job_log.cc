#include "traces/logs/job_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "traces/logs/lines.h"
#include "traces/logs/nccl_counters.h"
#include "traces/logs/python_errors.h"
#include "traces/logs/user_frame.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

using check::LogFact;
using Kind = LogFact::Kind;

constexpr std::string_view mismatch = "is running collective: CollectiveFingerPrint(";
constexpr std::string_view barrier = " failed to pass monitoredBarrier";
constexpr std::string_view original_follows = "Original exception:";
constexpr std::string_view watchdog = "Watchdog caught collective operation timeout: WorkNCCL(";
// The monitor of the watchdog, until torch 2.6 in two steps.
constexpr std::array<std::string_view, 3> silent_watchdog = {
    "watchdog got stuck for ", "Heartbeat monitor timed out!", "detected no heartbeat of its watchdog"};
// Of the monitor, which looks into the store: until torch 2.5, and since.
constexpr std::array<std::string_view, 2> store_is_gone = {
    "Failed to get exception dump flag from the global store",
    "maybe TCPStore server has shut down too early"};
constexpr std::string_view duplicate_gpu = "Duplicate GPU detected : rank ";  // NCCL's init.cc
constexpr std::string_view models_differ =
    "DDP expects same model across all ranks, but Rank ";          // reducer.cpp
constexpr std::string_view repeated_by_ray = "x across cluster]";  // "[repeated 14x across cluster]"
constexpr std::string_view running = "] Running collective: CollectiveFingerPrint(";
constexpr std::string_view reached =
    " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank ";
constexpr std::string_view expected = "Expected number of connected peers is: ";
constexpr std::string_view not_joined = ", but didn't join collective #";
constexpr std::string_view never_joined = "] are the lagging ranks that caused this timeout";
constexpr std::string_view launched = " launched up to operation ";
constexpr std::string_view missing_data = "Missing communicator data from ";
constexpr std::string_view missing_ranks =
    "he missing rank";  // "The missing rank: 3", "The missing ranks: 3,4"
// With "NCCL" until torch 2.7, without it since.
constexpr std::array<std::string_view, 2> enqueued = {"ast enqueued NCCL work: ", "ast enqueued work: "};
constexpr std::array<std::string_view, 2> completed = {"ast completed NCCL work: ", "ast completed work: "};
constexpr std::string_view saw_timeout = "due to a collective timeout from this local rank";
constexpr std::string_view saw_timeout_of = "due to a collective timeout from  rank ";
constexpr std::string_view stack_follows = "Stack trace of the failed collective:";
constexpr std::string_view not_destroyed = "destroy_process_group() was not called before program exit";
constexpr std::string_view raised_by = " raised the following async exception: ";
// In the lines after that: what NCCL found. (misc/socket.cc, transport/net_socket.cc)
constexpr std::string_view cause_follows = "Last error:";
constexpr std::string_view too_much = "message truncated : receiving ";
constexpr std::string_view too_little = " bytes instead of ";
constexpr std::string_view watchdog_ended = "atchdog thread terminated with exception: ";
constexpr std::string_view not_finished = "] joined but didn't finish collective #";
constexpr std::string_view blames = "ranks that caused the desync are:";  // ranks in the lines that follow
constexpr std::string_view snapshot = "Snapshot of ranks' latest states";
constexpr std::string_view started_at = " started ranks:";
constexpr std::string_view started_op = "] started ";
constexpr std::size_t error_max = 160;
constexpr const char* any_collective = "collective";  // a call of which the log does not say more
// Of the call that timed out: until torch 2.4, 2.5, and since 2.6.
constexpr std::array<std::string_view, 3> at_work = {
    "imeout at NCCL work: ", "watchdog at work: ", "watchdog at work sequence id: "};
constexpr std::array<std::string_view, 25> marks = {duplicate_gpu,
                                                    models_differ,
                                                    not_destroyed,
                                                    "Communicators... (",
                                                    missing_data,
                                                    mismatch,
                                                    barrier,
                                                    watchdog,
                                                    enqueued[0],
                                                    enqueued[1],
                                                    running,
                                                    reached,
                                                    expected,
                                                    not_joined,
                                                    launched,
                                                    missing_ranks,
                                                    never_joined,
                                                    watchdog_ended,
                                                    not_finished,
                                                    raised_by,
                                                    silent_watchdog[0],
                                                    silent_watchdog[1],
                                                    silent_watchdog[2],
                                                    store_is_gone[0],
                                                    store_is_gone[1]};

// Reads "1, 2, 5" from the beginning of a text, up to the first character that is not part of a list.
RankSet ranks_at(std::string_view text) {
  std::vector<Rank> ranks;
  const auto is_part = [](char c) { return (c >= '0' && c <= '9') || c == ' ' || c == ','; };
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_part);
  for (const char* at = text.begin(); at < end;) {
    Rank rank = -1;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error == std::errc() && rank >= 0 && rank < ranks_max) {
      ranks.push_back(rank);
      at = next;
    } else {
      ++at;
    }
  }
  return RankSet::of(std::move(ranks));
}

// The text between `from` and the next of `ends`; empty if the line is cut, or wrapped, before that: a part of a word
// is another word.
std::string field(std::string_view text, std::string_view from, std::string_view ends) {
  const std::size_t place = text.find(from);
  if (place == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = text.substr(place + from.size());
  const std::size_t end = rest.find_first_of(ends);
  return end == std::string_view::npos ? std::string() : std::string(rest.substr(0, end));
}

// The number after `from`; empty if the text ends with it, which may be in the middle.
std::optional<std::int64_t> whole_number_after(std::string_view text, std::string_view from) {
  const std::string digits = field(text, from, ",) ");
  return digits.empty() ? std::nullopt : number_at(digits);
}

class LineReader {
 public:
  explicit LineReader(const LogStream& log) : rank_(log.rank), job_(log.job) {}

  void read(const LogLine& line) {
    line_ = line.text;
    number_ = line.number;
    read_mismatch();
    read_calls();
    read_barrier();
    read_barriers_cause();
    read_watchdog();
    read_setup();
    read_cause();
    read_stack();
    read_desync();
    read_ras();
  }

  std::vector<LogFact> take() {
    std::set<std::pair<Rank, std::int64_t>> known;  // calls of which another line says more
    for (LogFact& fact : facts_) {
      const auto late =
          fact.kind == Kind::timed_out ? late_.find({fact.ranks.first(), fact.seq}) : late_.end();
      if (late != late_.end()) {  // before torch 2.8, only that line names the group
        if (fact.rank_in_group < 0) {
          fact.group = late->second.group;
          fact.rank_in_group = late->second.rank_in_group;
        }
        known.insert(late->first);
      }
    }
    for (auto& [call, fact] : late_) {
      if (!known.contains(call)) {
        facts_.push_back(std::move(fact));
      }
    }
    return std::move(facts_);
  }

 private:
  LogFact& add(Kind kind, RankSet ranks) { return add_fact(facts_, kind, std::move(ranks), number_); }

  bool has(std::string_view mark) const { return contains(line_, mark); }

  // "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[2],
  // TensorDtypes=Float, ...), but Rank 1 is running collective: ...". Without tensors, a comma is missing. The first
  // rank is the one that writes; both numbers count within the group.
  void read_mismatch() {
    Rank own = rank_;
    for (std::size_t place = line_.find(mismatch); place != std::string_view::npos;
         place = line_.find(mismatch, place + 1)) {
      const std::string_view before = line_.substr(0, place);
      const std::size_t word = before.rfind("ank ");
      const std::optional<Rank> rank =
          word == std::string_view::npos ? std::nullopt : rank_at(before.substr(word + 4));
      if (!rank) {
        continue;
      }
      std::string_view print = line_.substr(place + mismatch.size());
      print = print.substr(0, print.find(mismatch));
      if (!contains(print, ")")) {
        break;  // the line is cut
      }
      LogFact& fact = add(Kind::fingerprint, RankSet{own >= 0 ? own : *rank});
      fact.group = own >= 0 ? std::to_string(*rank) : "";
      set_print(print, fact);
      own = -1;
    }
  }

  static void set_print(std::string_view print, LogFact& fact) {
    fact.seq = number_after(print, "SequenceNumber=").value_or(-1);
    fact.op = field(print, "OpType=", ",)");
    const std::string shape = field(print, "TensorShape=[", "]");
    fact.shape = contains(print, "TensorShape=[") ? "[" + shape + "]" : "";
    fact.dtype = field(print, "TensorDtypes=", ",)");
  }

  // "[rank1]:[I..] [Rank 0] Running collective: CollectiveFingerPrint(.." is written by rank 1, whose rank in the group
  // is 0.
  void read_calls() {
    if (const std::size_t place = line_.find(running); place != std::string_view::npos) {
      const Rank rank = writer();
      if (rank >= 0 && line_.find(')', place) != std::string_view::npos) {
        LogFact& fact = add(Kind::calls, RankSet{rank});
        set_print(line_.substr(place + running.size()), fact);
        const std::size_t open = line_.rfind("[Rank ", place);
        fact.group =
            open == std::string_view::npos ? "" : std::string(line_.substr(open + 6, place - open - 6));
      }
    }
  }

  // "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", "[Rank 0]: Ranks 1, 2 failed ...".
  void read_barrier() {
    if (const std::size_t place = line_.find(reached); place != std::string_view::npos) {
      if (const std::optional<Rank> waits_for = rank_at(line_.substr(place + reached.size()))) {
        add(Kind::blamed, RankSet{*waits_for});
      }
      return;
    }
    const std::size_t place = line_.find(barrier);
    if (place == std::string_view::npos) {
      return;
    }
    const std::string_view before = line_.substr(0, place);
    const std::size_t word = before.rfind("Rank");
    const std::size_t digits = before.find_first_of("0123456789", word == std::string_view::npos ? 0 : word);
    if (digits == std::string_view::npos) {
      return;
    }
    // "[rank2]: ... [Rank 0]: Ranks 1 failed": the last two count within a group whose members are not known.
    const std::optional<std::int64_t> in_group = number_after(line_, "[Rank ");
    if (rank_ >= 0 && in_group && rank_ != *in_group) {
      return;
    }
    if (const RankSet ranks = ranks_at(before.substr(digits)); !ranks.empty()) {
      add(Kind::barrier_missing, ranks).op = "monitored_barrier";
      barrier_ = std::ssize(facts_) - 1;
      if (const Rank rank = rank_ >= 0 ? rank_ : static_cast<Rank>(in_group.value_or(-1)); rank >= 0) {
        add(Kind::named_missing, {rank});
      }
    }
  }

  // "Original exception:", and in the next line what Gloo saw: a peer that is gone did more than not arrive.
  void read_barriers_cause() {
    if (barrier_ >= 0 && is_original_ && kind_of_error(line_) == Kind::lost_peer) {
      facts_[static_cast<std::size_t>(barrier_)].text = line_.substr(0, error_max);
    }
    is_original_ = has(original_follows);
    barrier_ = is_original_ || has(barrier) ? barrier_ : -1;
  }

  // The rank in the job that wrote the line. "[Rank 3]" is one if it counts within the default group, as it does in
  // "[PG ID 0 PG GUID 0(default_pg) Rank 3]".
  Rank writer() const {
    const std::string group = named_group();
    const bool is_default = group.empty() || group == "0" || group.starts_with("default");
    return rank_ < 0 && is_default ? rank_after(line_, "Rank ").value_or(-1) : rank_;
  }

  // As the line names it.
  std::string named_group() const {
    std::string name = field(line_, "PG GUID ", "( ]");
    return name.empty() ? field(line_, "[PG ", " ]") : name;
  }

  std::string writers_group() const { return job_.empty() ? named_group() : job_ + "/" + named_group(); }

  // "[PG ID 0 PG GUID 0(default_pg) Rank 3]", "[PG 0 Rank 3]". Of "[Rank 3]" the group is not known.
  Rank rank_in_group() const {
    const std::size_t group = line_.find("[PG ");
    return group == line_.npos ? -1 : rank_after(line_.substr(group), " Rank ").value_or(-1);
  }

  void read_watchdog() {
    if (has(repeated_by_ray)) {
      add(Kind::repeated, {});
    }
    const Rank rank = writer();
    if (rank < 0) {
      return;
    }
    if (std::ranges::any_of(silent_watchdog, [this](std::string_view word) { return has(word); })) {
      add(Kind::watchdog_stuck, RankSet{rank}).count = number_after(line_, silent_watchdog[0]).value_or(0);
    }
    if (has(store_is_gone[0]) || has(store_is_gone[1])) {
      add(Kind::lost_store, RankSet{rank});
    }
    if (has(not_destroyed)) {
      add(Kind::left, RankSet{rank});
    }
    if (has(watchdog)) {
      LogFact& fact = add(Kind::timed_out, RankSet{rank});
      fact.seq = whole_number_after(line_, "SeqNum=").value_or(-1);
      fact.op = field(line_, "OpType=", ",)");
      fact.op = fact.op.empty() ? any_collective : fact.op;
      fact.shape = field(line_, "NumelIn=", ",)");
      fact.group = writers_group();
      fact.rank_in_group = rank_in_group();
    }
    if (const std::size_t place = line_.find(raised_by); place != std::string_view::npos) {
      read_async_error(rank, line_.substr(place + raised_by.size()));
    }
    const auto counter = [this](const std::array<std::string_view, 2>& words) {
      const std::optional<std::int64_t> number = number_after(line_, words[0]);
      return (number ? number : number_after(line_, words[1])).value_or(-1);
    };
    if (const std::int64_t number = counter(enqueued); number >= 0) {
      LogFact& fact = add(Kind::progress, RankSet{rank});
      fact.seq = number;
      fact.count = counter(completed);
      fact.group = writers_group();
      fact.rank_in_group = rank_in_group();
    }
    for (const std::string_view word : at_work) {
      read_late(rank, number_after(line_, word));
    }
    if (has(saw_timeout) && counter(enqueued) > counter(completed) && counter(completed) >= 0) {
      read_late(rank, counter(completed) + 1);
    } else if (has(saw_timeout)) {  // the line counts the calls of its own group, and those have ended
      add(Kind::told_of_timeout, RankSet{rank});
    }
    if (const std::optional<Rank> other = rank_after(line_, saw_timeout_of)) {
      add(Kind::told_of_timeout, RankSet{*other});
    }
    if (const std::size_t place = line_.find(watchdog_ended); place != std::string_view::npos) {
      const std::string_view error = line_.substr(place + watchdog_ended.size());
      const std::optional<Kind> kind = has("Watchdog caught") ? std::nullopt : kind_of_error(error);
      if (kind && *kind != Kind::gave_up) {
        add(*kind, RankSet{rank}).text = error.substr(0, error_max);
      }
    }
  }

  // "Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 1000", "Rank 3 has 2 params, while rank 2 has
  // inconsistent 4 params.": the first rank is the one that writes, and both count within a group.
  void read_setup() {
    const auto is_own = [this](std::optional<Rank> named) { return named && (rank_ < 0 || rank_ == *named); };
    if (has(duplicate_gpu)) {
      const std::optional<Rank> rank = rank_after(line_, duplicate_gpu);
      const std::optional<Rank> other = rank_after(line_, " and rank ");
      LogFact& fact = add(Kind::shared_gpu, is_own(rank) && other ? RankSet({*rank, *other}) : RankSet());
      const std::size_t bus = line_.find("CUDA device ");
      fact.text = bus == line_.npos
                      ? ""
                      : std::string(line_.substr(
                            bus + 12, line_.find_first_not_of("0123456789abcdef", bus + 12) - bus - 12));
    }
    if (const std::size_t place = line_.find(models_differ); place != line_.npos) {
      const std::string_view text = line_.substr(place);
      const std::optional<Rank> rank = rank_after(text, models_differ);
      const std::optional<Rank> other = rank_after(text, "while rank ");
      const std::optional<std::int64_t> count = number_after(text, " has ");
      const std::optional<std::int64_t> others = number_after(text, "inconsistent ");
      if (!rank || !other || !count || !others) {
        return;  // the line is cut
      }
      add(Kind::model, RankSet{rank_ < 0 ? *rank : rank_}).count = *count;
      if (is_own(rank)) {
        LogFact& fact = add(Kind::model, RankSet{*other});
        fact.count = *others;
        fact.text = fmt::format("rank {}", *rank);
      }
    }
  }

  // After a call that timed out: "#2 train_step from /home/user/train.py:28", innermost first.
  void read_stack() {
    if (!line_.starts_with('#')) {
      stack_of_ = has(stack_follows) ? std::max(last_timeout(), ended_) : -1;
      return;
    }
    const std::size_t name = line_.find(' ');
    const std::size_t from = line_.find(" from ");
    const std::size_t colon = line_.rfind(':');
    if (stack_of_ < 0 || name >= from || from == std::string_view::npos || colon <= from) {
      return;
    }
    const check::DumpFrame frame{.function = std::string(line_.substr(name + 1, from - name - 1)),
                                 .file = std::string(line_.substr(from + 6, colon - from - 6)),
                                 .line = number_at(line_.substr(colon + 1)).value_or(0)};
    if (is_users(frame)) {
      facts_[static_cast<std::size_t>(stack_of_)].site = fmt::format("{}:{}", frame.file, frame.line);
      stack_of_ = -1;
    }
  }

  // The index of the last fact about a timeout; -1: none.
  std::ptrdiff_t last_timeout() const {
    const auto late = std::ranges::find(facts_.rbegin(), facts_.rend(), Kind::timed_out, &LogFact::kind);
    return facts_.rend() - late - 1;
  }

  // "[Rank 2] Collective WorkNCCL(SeqNum=7, OpType=ALLREDUCE, ...) raised the following async exception: NCCL error:
  // remote process exited": NCCL ended the call, and what the watchdog then says of it is not a timeout.
  void read_async_error(Rank rank, std::string_view error) {
    const std::optional<Kind> kind = kind_of_error(error);
    const std::optional<std::int64_t> seq = number_after(line_, "SeqNum=");
    if (!kind || *kind == Kind::gave_up || !seq) {
      return;
    }
    LogFact& fact = add(*kind, RankSet{rank});
    fact.text = error.substr(0, error_max);
    fact.seq = *seq;
    fact.op = field(line_, "OpType=", ",)");
    failed_.insert({rank, *seq});
    ended_ = std::ssize(facts_) - 1;
  }

  void read_cause() {
    if (ended_ >= 0 && is_cause_) {
      LogFact& fact = facts_[static_cast<std::size_t>(ended_)];
      const std::size_t place = line_.find(too_much);
      const std::size_t limit = line_.find(too_little);
      if (place != std::string_view::npos && limit != std::string_view::npos && place < limit) {
        fact.kind = Kind::truncated;
        fact.text = fmt::format("{} vs {}", number_at(line_.substr(place + too_much.size())).value_or(-1),
                                number_at(line_.substr(limit + too_little.size())).value_or(-1));
      } else if (fact.kind == Kind::raised) {
        fact.kind = kind_of_error(fact.text + ": " + std::string(line_)).value_or(fact.kind);
      }
    }
    is_cause_ = line_.starts_with(cause_follows);
  }

  // A call that timed out, of which no line may say more.
  void read_late(Rank rank, std::optional<std::int64_t> seq) {
    if (seq && !failed_.contains({rank, *seq})) {
      LogFact fact;
      fact.kind = Kind::timed_out;
      fact.ranks = RankSet{rank};
      fact.seq = *seq;
      fact.op = any_collective;
      fact.group = writers_group();
      fact.rank_in_group = rank_in_group();
      fact.line = number_;
      late_.emplace(std::pair(rank, *seq), std::move(fact));
    }
  }

  // "[0, 3] finished collective #14, but didn't join collective #15 (count from 1)", "[3] joined but didn't finish
  // collective #14". Then the ranks' latest calls: "#14 started ranks: " and, in lines of their own, "[3] started
  // ALLREDUCE".
  void read_desync() {
    const std::size_t joined = line_.find(not_joined);
    is_blame_ = (is_blame_ || has(blames)) && !has(snapshot);
    const std::size_t unfinished = is_blame_ ? line_.find(not_finished) : std::string_view::npos;
    const std::size_t end = std::min({joined, unfinished, line_.find(never_joined)});
    if (end != std::string_view::npos) {
      if (const RankSet ranks = listed_before(end); !ranks.empty()) {
        const std::string_view word = end == joined ? not_joined : not_finished;
        LogFact& fact = add(end == unfinished ? Kind::not_finished : Kind::not_joined, ranks);
        fact.op = any_collective;
        fact.seq =
            end == line_.find(never_joined) ? 1 : number_at(line_.substr(end + word.size())).value_or(-1);
      }
    }
    if (const std::size_t place = line_.find(started_at); place != std::string_view::npos) {
      const std::size_t sign = line_.rfind('#', place);
      latest_ = sign == std::string_view::npos ? std::nullopt : number_at(line_.substr(sign + 1));
      started_.clear();
      is_odd_ = false;
    } else if (const std::size_t op = line_.find(started_op); latest_ && op != std::string_view::npos) {
      add_started(listed_before(op), std::string(without_blanks(line_.substr(op + started_op.size()))));
    }
  }

  RankSet listed_before(std::size_t end) const {
    const std::size_t open = line_.rfind('[', end);
    return open == std::string_view::npos ? RankSet() : ranks_at(line_.substr(open + 1));
  }

  // Ranks in different calls with one number.
  void add_started(const RankSet& ranks, const std::string& op) {
    started_.emplace_back(ranks, op);
    const std::size_t known = is_odd_ ? started_.size() - 1 : 0;
    is_odd_ = is_odd_ || op != started_.front().second;
    for (std::size_t i = is_odd_ ? known : started_.size(); i < started_.size(); ++i) {
      for (const Rank rank : started_[i].first.to_vector()) {
        LogFact& fact = add(Kind::fingerprint, RankSet{rank});
        fact.op = started_[i].second;
        fact.seq = *latest_;
      }
    }
  }

  // "  1   4   1   4   4", or "  1   4   4" if nodes differ: of the job, its GPUs in all. "  1  3  1  2  2  4  RUNNING
  // MISMATCH": of a group of communicators, the ranks of each.
  void read_ras_table() {
    std::vector<std::int64_t> numbers;
    std::string_view rest = line_;
    for (std::size_t at = rest.find_first_not_of(' '); at != std::string_view::npos;
         at = rest.find_first_not_of(' ')) {
      const std::size_t end = std::min(rest.find(' ', at), rest.size());
      const std::optional<std::int64_t> number = number_at(rest.substr(at, end - at));
      if (!number) {
        break;
      }
      numbers.push_back(*number);
      rest.remove_prefix(end);
    }
    const bool is_at_end = rest.find_first_not_of(' ') == std::string_view::npos;
    const bool is_of_job = (numbers.size() == 5 || numbers.size() == 3) && is_at_end;
    if (is_of_job && sizes_.empty()) {
      gpus_ = numbers.back();  // of the last such line: those before it are of some nodes
    } else if (numbers.size() == 6 && !is_at_end) {
      sizes_[numbers.front()] = numbers[4];
    }
  }

  // "#0-0 (27a079b828ff1a75) MISMATCH", "  6 ranks have launched up to operation 6649", and a line for each rank that
  // is named: "  Rank 0 -- GPU 0 managed by ..." or "  Rank 7 has launched up to operation 60 -- ...".
  void read_ras() {
    const std::string_view text = line_.substr(std::min(line_.find_first_not_of(" \t"), line_.size()));
    if (text.starts_with('#') && number_at(text.substr(1))) {
      communicator_ = std::string(text.substr(0, text.find(' ')));
      operation_.reset();
      is_missing_ = false;
      const auto size = sizes_.find(number_at(text.substr(1)).value_or(-1));
      is_of_all_ = size == sizes_.end() || gpus_ < 0 || size->second == gpus_;
    }
    if (communicator_.empty()) {
      read_ras_table();
    }
    is_missing_ = is_missing_ || has(missing_data);
    const bool is_one = text.starts_with("Rank ");
    if (is_missing_ && is_one) {
      const std::optional<Rank> rank = rank_at(text.substr(5));
      const bool is_known = is_of_all_ && rank;
      LogFact& fact = add(Kind::unreachable, is_known ? RankSet{*rank} : RankSet());
      fact.group = communicator_;
      fact.text = is_known ? std::string(unresponsive) : std::string(text);
    }
    if (has(launched)) {
      operation_ = number_after(line_, launched);
      const std::optional<std::int64_t> number = number_at(is_one ? text.substr(5) : text);
      if (operation_ && number && *number >= 0) {
        add_launched(is_one ? *number : -1, is_one ? 1 : std::min<std::int64_t>(*number, ranks_max));
      }
    } else if (operation_ && is_one && has(" -- GPU ")) {
      if (const std::optional<Rank> rank = rank_at(text.substr(5))) {
        add_launched(*rank, 0);
      }
    }
    if (const std::size_t place = text.find(missing_ranks); place != std::string_view::npos) {
      const std::size_t colon = text.find(':', place);
      const RankSet ranks = colon == std::string_view::npos ? RankSet() : ranks_at(text.substr(colon + 1));
      if (!ranks.empty()) {
        add(Kind::unreachable, ranks).group = communicator_;
      }
    }
  }

  // `rank` counts within the communicator; it is the job's only if the communicator has all ranks. -1: the line has
  // none.
  void add_launched(std::int64_t rank, std::int64_t count) {
    const bool is_known = is_of_all_ && rank >= 0 && rank < ranks_max;
    LogFact& fact = add(Kind::launched, is_known ? RankSet{static_cast<Rank>(rank)} : RankSet());
    fact.count = count;
    fact.seq = *operation_;
    fact.group = communicator_;
    fact.text = is_known || rank < 0 ? "" : std::string(line_.substr(line_.find("Rank ")));
  }

  Rank rank_;  // in the job; -1: unknown
  std::string job_;
  std::string_view line_;
  std::int64_t number_ = 0;
  std::map<std::pair<Rank, std::int64_t>, LogFact> late_;  // by rank and number of the call
  std::set<std::pair<Rank, std::int64_t>> failed_;         // calls that NCCL ended, likewise
  std::ptrdiff_t stack_of_ = -1;                           // index of the fact whose stack follows; -1: none
  std::ptrdiff_t ended_ = -1;                              // index of the last call that NCCL ended; -1: none
  bool is_cause_ = false;                                  // this line says what NCCL found
  std::ptrdiff_t barrier_ = -1;  // index of a barrier's fact whose cause follows; -1: none
  bool is_original_ = false;     // in this line
  // Of the desync report.
  bool is_blame_ = false;
  std::optional<std::int64_t> latest_;                    // the number of the calls that ranks have started
  std::vector<std::pair<RankSet, std::string>> started_;  // and their names
  bool is_odd_ = false;                                   // they differ
  // Of NCCL RAS.
  std::int64_t gpus_ = -1;                      // of the job
  std::map<std::int64_t, std::int64_t> sizes_;  // of communicators, by their group's number
  std::string communicator_;                    // that the last line was about
  bool is_of_all_ = true;                       // it has all ranks of the job
  std::optional<std::int64_t> operation_;       // from the previous line
  bool is_missing_ = false;                     // its ranks that did not answer follow
  std::vector<LogFact> facts_;
};

}  // namespace

bool looks_like_job_log(std::string_view bytes) {
  return std::ranges::any_of(marks, [bytes](std::string_view mark) { return contains(bytes, mark); });
}

std::vector<check::LogFact> read_job_log(const LogStream& log) {
  LineReader reader(log);
  for (const LogLine& line : log.lines) {
    reader.read(line);
  }
  return reader.take();
}

}  // namespace rollcall::traces

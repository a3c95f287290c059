#include "real/evidence/evidence_builder.h"

#include <csignal>

#include "real/evidence/reconstruct.h"
#include "sim/report/verdict.h"
#include "tests/catch.h"

namespace rollcall::real::evidence_builder_test {
namespace {

// Logs like those that the ranks of one group of three would write.
class Logs {
 public:
  Logs() {
    log.ranks.resize(3);
    for (const Rank rank : {0, 1, 2}) {
      add(rank, next(rank, Record::Kind::begin));
    }
  }

  Logs& issue(Rank rank, std::int64_t numel = 4) {
    Record record = next(rank, Record::Kind::issue);
    record.call = calls_[static_cast<std::size_t>(rank)]++;
    record.value = no_batch;
    record.op.op.kind = OpKind::all_reduce;
    record.op.op.rank = rank;
    record.op.op.numel = numel;
    record.op.input = Shape{numel};
    return add(rank, record).add(rank, about_last(rank, Record::Kind::wait));
  }
  Logs& complete(Rank rank) { return add(rank, about_last(rank, Record::Kind::complete)); }
  Logs& complete_all() { return complete(0).complete(1).complete(2); }
  Logs& lose_peer(Rank rank) {
    Record record = about_last(rank, Record::Kind::fail);
    record.lost_peer = true;
    record.type = "RuntimeError";
    record.text = "Connection closed by peer";
    add(rank, record);
    record.kind = Record::Kind::raise;
    return add(rank, record);
  }
  Logs& finish(Rank rank) { return add(rank, next(rank, Record::Kind::finish)); }
  Logs& kill(Rank rank) {
    log.ranks[static_cast<std::size_t>(rank)].death = Death{.signal = SIGKILL};
    return *this;
  }

  Report report() const { return reconstruct({.world_size = 3}, groups, log); }

  RunLog log;
  std::vector<GroupMembers> groups{{world_group, "world", {0, 1, 2}}};

 private:
  Record next(Rank, Record::Kind kind) {
    Record record;
    record.kind = kind;
    record.at = ++now_;
    return record;
  }
  Record about_last(Rank rank, Record::Kind kind) {
    Record record = next(rank, kind);
    record.call = calls_[static_cast<std::size_t>(rank)] - 1;
    return record;
  }
  Logs& add(Rank rank, const Record& record) {
    log.ranks[static_cast<std::size_t>(rank)].records.push_back(record);
    return *this;
  }

  std::vector<std::int64_t> calls_{0, 0, 0};
  Time now_ = 0;
};

}  // namespace

TEST_CASE("logs of ranks that finished make an ok", "[real]") {
  Logs logs;
  logs.issue(0).issue(1).issue(2).complete_all().finish(0).finish(1).finish(2);
  CHECK(verdict_word(logs.report().verdict) == "ok");
  CHECK(logs.report().ops == 3);
}

TEST_CASE("a rank that finished early is named by the logs of those that wait", "[real]") {
  Logs logs;
  logs.issue(0).issue(1).issue(2).complete_all().finish(1).issue(0).issue(2);
  const Report report = logs.report();
  const Finding& finding = std::get<Deadlock>(report.verdict).finding;
  CHECK(finding.kind == FindingKind::missing_participant);
  CHECK(finding.culprits == RankSet{1});
  CHECK(finding.at->call.seq == 1);
  CHECK(is_stuck({.world_size = 3}, logs.groups, logs.log, second));
}

TEST_CASE("a rank killed in a call that all had come to is named, not those that noticed", "[real]") {
  Logs logs;
  logs.issue(0).issue(1).issue(2).kill(1).lose_peer(2).lose_peer(0);
  const Report report = logs.report();
  const Finding& finding = std::get<Deadlock>(report.verdict).finding;
  CHECK(finding.kind == FindingKind::rank_crashed);
  CHECK(finding.culprits == RankSet{1});
  CHECK(finding.headline == "rank 1 died before all_reduce #0 on world; ranks 0,2 wait for it");
  CHECK(report.of(1).state == RankClass::State::crashed);
  CHECK(report.of(1).exception == "SIGKILL: while it was in all_reduce #0 on world");
  CHECK(report.of(0).state == RankClass::State::raised);
}

TEST_CASE("calls that disagree are a mismatch, whatever became of the ranks", "[real]") {
  Logs logs;
  logs.issue(0).issue(1, 8).issue(2).kill(1).lose_peer(0).lose_peer(2);
  const Report report = logs.report();
  const Finding& finding = std::get<Mismatch>(report.verdict).finding;
  CHECK(finding.kind == FindingKind::numel_mismatch);
  CHECK(finding.culprits == RankSet{1});
}

TEST_CASE("a deadline is no proof while somebody is at work", "[real]") {
  Logs logs;
  logs.issue(0).issue(1);  // rank 2 computes
  CHECK_FALSE(is_stuck({.world_size = 3}, logs.groups, logs.log, 10 * second));
  logs.log.timed_out = true;
  CHECK(kind_of(logs.report().verdict) == FindingKind::deadline);
}

TEST_CASE("ranks that could not connect have not reached their deadline", "[real]") {
  Logs logs;
  logs.log.ranks[1].records.clear();
  logs.log.timed_out = true;
  const Report report = logs.report();
  CHECK(kind_of(report.verdict) == FindingKind::never_connected);
  CHECK(finding_of(report.verdict)->headline == "the ranks did not connect to each other within 60 s");
  CHECK(finding_of(report.verdict)->culprits.empty());
}

TEST_CASE("a complete call is given all the time there is", "[real]") {
  Logs logs;
  logs.issue(0).issue(1).issue(2);
  CHECK_FALSE(is_stuck({.world_size = 3}, logs.groups, logs.log, 10 * second));
}

TEST_CASE("calls that disagree are given a little more time", "[real]") {
  Logs logs;
  logs.issue(0).issue(1).issue(2, 8);
  const Options options{.world_size = 3};
  CHECK_FALSE(is_stuck(options, logs.groups, logs.log, options.patience));
  CHECK(is_stuck(options, logs.groups, logs.log, 10 * options.patience));
}

}  // namespace rollcall::real::evidence_builder_test

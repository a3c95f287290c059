#include "viz/text/text_report.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"
#include "viz/rows/source_rows.h"
#include "viz/rows/verdict_parts.h"

namespace rollcall::viz::text_report_test {

namespace {

using Detail = TextStyle::Detail;

std::string text(const Report& report, Detail detail = Detail::normal) {
  return text_report(report, {detail, false});
}

auto lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Every rank prints its own line.
void print_by_rank(Report& report) {
  for (Rank rank = 0; rank < report.world_size; ++rank) {
    report.output.push_back({rank, 0, false, "I am rank " + std::to_string(rank)});
  }
}

}  // namespace

TEST_CASE("a deadlock says who is missing, where everyone is, why and what to do") {
  CHECK(
      text(samples::missing_rank(4)) ==
      "error[deadlock]: rank 0 never called all_reduce #5 on world (3 of 4 ranks wait)\n"
      "  --> uneven_inputs.json:14:11\n"
      "   |\n"
      "   |  rank 0     finished after 5 inputs\n"
      "   |  ranks 1-3  waiting in all_reduce #5 (float32 x 1, SUM) at uneven_inputs.json:14:11, for rank 0\n"
      "   |\n"
      "   = last common call: all_reduce #4 on world\n"
      "   = cause: rank 0 had 5 inputs and finished, the others have 6\n"
      "   = help: wrap the loop in Join, or give every rank the same number of inputs\n"
      "   = on nccl: the others hang until the watchdog stops them after 10 minutes\n"
      "replay: rollcall run scenarios/uneven_inputs.json --seed 0\n");
}

TEST_CASE("a thousand ranks take the lines of ten thousand") {
  const std::string thousand = text(samples::missing_rank(1000));
  CHECK(lines_in(thousand) == lines_in(text(samples::missing_rank(10000))));
  CHECK(lines_in(thousand) <=
        lines_in(text(samples::missing_rank(4))) + 1);  // a longer number may break a line
  CHECK_THAT(thousand, Contains("(999 of 1000 ranks wait)"));
  CHECK_THAT(thousand, Contains("   |  ranks 1-999  waiting in all_reduce #5"));
}

TEST_CASE("a mismatch shows the calls side by side and underlines the difference") {
  CHECK(text(samples::size_mismatch()) ==
        "error[mismatch]: rank 3 called all_reduce #2 on world with 5 elements, the others with 4\n"
        "  --> sizes.json:12:9\n"
        "   |\n"
        "   |             call           numel  dtype    reduce  at\n"
        "   |  ranks 0-2  all_reduce #2  4      float32  SUM     sizes.json:9:9\n"
        "   |  rank 3     all_reduce #2  5      float32  SUM     sizes.json:12:9\n"
        "   |                            ^^^^^\n"
        "   |\n"
        "   = last common call: all_reduce #1 on world\n"
        "   = cause: all_reduce needs equally many elements on every rank\n"
        "   = help: pad to a common size\n"
        "replay: rollcall run scenarios/uneven_inputs.json --seed 0\n");
}

TEST_CASE("where the operations differ, what belongs to them is not underlined") {
  Report report = samples::size_mismatch();
  auto& mismatch = std::get<Mismatch>(report.verdict);
  mismatch.variants[1].call = mismatch.variants[0].call;
  mismatch.variants[1].call.op = "broadcast";
  mismatch.variants[1].call.reduce_op = "";
  mismatch.variants[1].call.root = 0;
  CHECK_THAT(text(report),
             Contains("   |             call           numel  dtype    reduce  root  at\n"
                      "   |  ranks 0-2  all_reduce #2  4      float32  SUM           sizes.json:9:9\n"
                      "   |  rank 3     broadcast #2   4      float32          0     sizes.json:9:9\n"
                      "   |             ^^^^^^^^^^^^^\n"
                      "   |\n"));
}

TEST_CASE("on a tie no rank's line is singled out") {
  Report report = samples::size_mismatch();
  auto& finding = std::get<Mismatch>(report.verdict).finding;
  finding.tie = true;
  finding.culprits = {0, 1, 2, 3};
  CHECK_THAT(text(report), Contains("\n  --> sizes.json:9:9\n"));  // the place where they met
  CHECK_THAT(text(report), Contains("   = tie: no side has a majority"));
}

TEST_CASE("ranks that take no part in a mismatch are shown below it") {
  Report report = samples::size_mismatch();
  report.world_size = 5;
  report.ranks.push_back(samples::finished({4}, 2));
  const std::string shown = text(report);
  CHECK_THAT(shown, Contains("   |\n   |  rank 4  finished after 2 inputs\n   |\n"));
  CHECK_THAT(shown, !Contains("waiting in"));
  CHECK_THAT(text(report, Detail::verbose), Contains("waiting in"));
}

TEST_CASE("a device mismatch shows the devices") {
  Report report = samples::size_mismatch();
  auto mismatch = std::get<Mismatch>(report.verdict);
  mismatch.variants[1].call = mismatch.variants[0].call;
  mismatch.variants[1].call.device = "cpu";
  report.verdict = DeviceMismatch{mismatch.finding, mismatch.variants};
  CHECK_THAT(text(report),
             Contains("   |             call           numel  dtype    reduce  device  at\n"
                      "   |  ranks 0-2  all_reduce #2  4      float32  SUM     cuda:0  sizes.json:9:9\n"
                      "   |  rank 3     all_reduce #2  4      float32  SUM     cpu     sizes.json:9:9\n"
                      "   |\n"));
}

TEST_CASE("a run that completed is one sentence and what was printed") {
  Report report = samples::completed(4);
  report.output = {{0, 5, false, "10"}, {1, 5, false, "11"}, {2, 5, false, "11"}, {3, 5, false, "11"}};
  CHECK(text(report) ==
        "ok: uneven inputs without Join: 4 ranks finished, 23 calls in 41.25 us of simulated time\n"
        "  rank 0     10\n"
        "  ranks 1-3  11\n");
}

TEST_CASE("a success that another schedule could undo says so, and what tries the others") {
  Report report = samples::completed(4);
  CHECK_THAT(text(report), !Contains("schedule"));
  report.exhaustive = false;
  CHECK_THAT(text(report), Contains("   = schedules: 1 schedule; the search was not exhaustive, and "
                                    "`rollcall explore` tries others\n"));
}

TEST_CASE("quiet is the verdict's sentence only") {
  Report report = samples::missing_rank(4);
  report.expected = false;
  report.unmet = {"expected ok"};
  CHECK(text(report, Detail::quiet) ==
        "error[deadlock]: rank 0 never called all_reduce #5 on world (3 of 4 ranks wait)\n");
}

TEST_CASE("verbose adds how it was run") {
  const std::string verbose = text(samples::completed(4), Detail::verbose);
  CHECK_THAT(verbose, Contains("   |  ranks 0-3  finished after 6 inputs\n"));
  CHECK_THAT(verbose,
             Contains("   = run: world size 4, backend nccl, seed 0, 23 calls, 41.25 us simulated\n"));
  CHECK_THAT(verbose, Contains("every schedule gives this verdict"));
  CHECK_THAT(verbose, Contains("replay: rollcall run"));
}

TEST_CASE("an expected failure is called as expected") {
  Report report = samples::missing_rank(4);
  report.expected = true;
  CHECK_THAT(text(report), EndsWith("--seed 0\nresult: as expected\n"));
}

TEST_CASE("an unexpected verdict says what was expected, be it a failure or a success") {
  for (Report report : {samples::missing_rank(4), samples::completed(4)}) {
    report.expected = false;
    report.unmet = {"expected verdict mismatch", "expected culprit 3"};
    CHECK_THAT(text(report), EndsWith("result: not as expected\n"
                                      "  - expected verdict mismatch\n"
                                      "  - expected culprit 3\n"));
  }
}

TEST_CASE("ranks that differ only in their number of inputs share a row when there are many") {
  Report report = samples::missing_rank(1000);
  report.ranks.clear();
  for (Rank rank = 0; rank < 1000; ++rank) {
    report.ranks.push_back(samples::finished({rank}, 5 + rank));
  }
  const std::string shown = text(report);
  CHECK_THAT(shown, Contains("   |  rank 0       finished after 5 inputs\n"));  // the culprit has its own row
  CHECK_THAT(shown, Contains("   |  ranks 1-999  finished after 6 to 1004 inputs\n"));
  CHECK(lines_in(text(report, Detail::verbose)) > 1000);
}

TEST_CASE("a thousand different states are cut, and the culprit is not among what is cut") {
  Report report = samples::missing_rank(1000);
  auto& finding = std::get<Deadlock>(report.verdict).finding;
  finding.culprits = {999};
  report.ranks.clear();
  for (Rank rank = 0; rank < 1000; ++rank) {
    report.ranks.push_back(samples::raised({rank}, "ValueError: rank " + std::to_string(rank)));
  }
  const std::string shown = text(report);
  CHECK(lines_in(shown) < 30);
  CHECK_THAT(shown, Contains("   |  rank 999  raised ValueError: rank 999\n"));
  CHECK_THAT(shown, Contains("   |  ...       and 989 more states (-v shows all)\n"));
}

TEST_CASE("a thousand different printed lines are cut unless verbose") {
  Report report = samples::completed(1000);
  print_by_rank(report);
  CHECK(lines_in(text(report)) == 21);
  CHECK_THAT(text(report), Contains("  ...      and 981 more lines (-v shows all)\n"));
  CHECK(lines_in(text(report, Detail::verbose)) > 1000);
}

TEST_CASE("calls that were paired earlier without belonging together are listed") {
  Report report = samples::missing_rank(4);
  Call save = samples::all_reduce(3, "job.json:5:3");
  save.label = "save_checkpoint";
  Call finalize = samples::all_reduce(3, "job.json:9:3");
  finalize.label = "finalize";
  std::get<Deadlock>(report.verdict).finding.first_divergence =
      Divergence{"world", 3, {{{0}, save}, {{1, 2, 3}, finalize}}};
  CHECK_THAT(
      text(report),
      Contains("   = first divergence: collective #3 on world paired calls that do not belong together\n"
               "       rank 0     all_reduce from save_checkpoint at job.json:5:3\n"
               "       ranks 1-3  all_reduce from finalize at job.json:9:3\n"));
}

TEST_CASE("a cycle of waiting ranks is told step by step") {
  Report report = samples::missing_rank(2);
  std::get<Deadlock>(report.verdict).finding.chain = {"rank 0 waits in a #0 for rank 1",
                                                      "rank 1 waits in b #0 for rank 0"};
  CHECK_THAT(text(report), Contains("   = who waits for whom:\n"
                                    "       1.  rank 0 waits in a #0 for rank 1\n"
                                    "       2.  rank 1 waits in b #0 for rank 0\n"));
}

TEST_CASE("the first call of a group has no last common call") {
  Report report = samples::missing_rank(2);
  report.ranks[1] = samples::waiting({1}, samples::all_reduce(0), {0});
  std::get<Deadlock>(report.verdict).finding.at->call.seq = 0;
  CHECK_THAT(text(report), Contains("   = last common call: none, this is the first on world\n"));
}

TEST_CASE("long sentences break below their beginning") {
  Report report = samples::missing_rank(2);
  std::get<Deadlock>(report.verdict).finding.cause = "a" + std::string(30, 'b') + " " + std::string(90, 'c');
  CHECK_THAT(text(report), Contains("   = cause: a" + std::string(30, 'b') + "\n            " +
                                    std::string(90, 'c') + "\n"));
}

TEST_CASE("a printed line break stays a line, and a printed escape cannot command the terminal") {
  Report report = samples::completed(1);
  report.output = {{0, 0, false, "first\nsecond \x1b[2J"}};
  CHECK_THAT(text(report), Contains("  rank 0  first\n          second \\x1b[2J\n"));
}

TEST_CASE("every verdict names itself in the first line") {
  Finding finding;
  finding.headline = "what happened";
  const std::pair<Verdict, std::string> cases[] = {
      {Deadlock{finding}, "error[deadlock]: what happened\n"},
      {Mismatch{finding, {}}, "error[mismatch]: what happened\n"},
      {DeviceMismatch{finding, {}}, "error[device_mismatch]: what happened\n"},
      {WrongResult{finding, {}}, "error[wrong_result]: what happened\n"},
      {RankFailed{finding, "ValueError: no"}, "error[rank_failed]: what happened\n"},
      {LimitReached{finding, 10}, "error[limit_reached]: what happened\n"},
  };
  for (const auto& [verdict, first_line] : cases) {
    const Report report = samples::report(verdict, 2, {samples::finished({0, 1}, -1)});
    CHECK_THAT(text(report), StartsWith(first_line));
    CHECK_THAT(text(report), Contains("   |  ranks 0-1  finished\n"));
  }
}

TEST_CASE("color changes nothing but the looks") {
  const Report report = samples::missing_rank(4);
  std::string colored = text_report(report, {Detail::normal, true});
  CHECK_THAT(colored, StartsWith("\x1b[1;31merror[deadlock]\x1b[0m"));
  CHECK_THAT(colored, Contains("\x1b[1;31mrank 0\x1b[0m"));      // the culprit
  CHECK_THAT(colored, !Contains("\x1b[1;31mranks 1-3\x1b[0m"));  // not the waiting ranks
  for (auto begin = colored.find('\x1b'); begin != std::string::npos; begin = colored.find('\x1b')) {
    colored.erase(begin, colored.find('m', begin) - begin + 1);
  }
  CHECK(colored == text(report));
}

TEST_CASE(
    "a line that is at hand stands below the arrow, with a caret, and the arrow has the path as it was "
    "given") {
  Report report = samples::missing_rank(4);
  report.sources = {
      {"uneven_inputs.json:14:11", "jobs/uneven_inputs.json", 14, 11, "\t\t      {\"all_reduce\": {}}"}};
  CHECK_THAT(text(report), Contains("  --> jobs/uneven_inputs.json:14:11\n"
                                    "   |\n"
                                    "14 |      {\"all_reduce\": {}}\n"
                                    "   |        ^\n"
                                    "   |\n"
                                    "   |  rank 0 "));
}

TEST_CASE("of a long line the part with the place is shown") {
  const std::string line = std::string(300, 'a') + "HERE" + std::string(300, 'b');
  const Excerpt excerpt = excerpt_of({"x.py:3:301", "x.py", 3, 301, line});
  CHECK(excerpt.text.size() < 100);
  REQUIRE(excerpt.mark >= 0);
  CHECK(excerpt.text.substr(static_cast<std::size_t>(excerpt.mark), 4) == "HERE");
  CHECK(excerpt_of({"x.py:3", "x.py", 3, 0, "call()"}).mark == -1);
  CHECK(excerpt_of({"x.py:3:99", "x.py", 3, 99, "call()"}).mark == -1);
}

TEST_CASE("of a long exception the first sentence is shown, and all of it where details are wished for") {
  const std::string message =
      "ValueError: " + std::string(30, 'a') + " bad\nsecond line " + std::string(900, 'x');
  Finding finding;
  finding.culprits = {0};
  finding.headline = "rank 0 raised";
  const Report report = samples::report(RankFailed{finding, message}, 1, {samples::raised({0}, message)});
  CHECK_THAT(text(report), Contains("bad ...\n") && !Contains("second line"));
  CHECK_THAT(text(report, Detail::verbose), Contains("second line"));
}

TEST_CASE("split sizes that disagree are listed by pairs, and sizes that may differ are not underlined") {
  Report report = samples::size_mismatch();
  CHECK_THAT(text(report), Contains("^"));
  std::get<Mismatch>(report.verdict).splits = {{3, 2, 4, 1}};
  CHECK_THAT(text(report),
             Contains("rank 3 to rank 2  sends 4 elements; rank 2 expects 1") && !Contains("^"));
}

TEST_CASE("where timing decides, no report says that nothing depends on it") {
  Report report = samples::completed(2);
  CHECK(timing_phrase(report) == "nothing depends on timing: every schedule gives this verdict");
  report.verdict =
      Race{{}, {}, {}, {{"ok", FindingKind::ok, 2}, {"deadlock", FindingKind::missing_participant, 2}}};
  report.schedules = 4;
  CHECK(timing_phrase(report) == "timing decides the outcome: 4 schedules were run, and there are no others");
  report.exhaustive = false;
  CHECK(timing_phrase(report) ==
        "timing decides the outcome: seen in 4 schedules; the search was not exhaustive");
  report.exhaustive = true;
  report.verdict = Race{};
  CHECK(timing_phrase(report) == "the values depend on timing; every schedule gives this verdict");
}

TEST_CASE("what was done to a tensor too early is said, with names in quotes") {
  const TensorPlace place{{0}, "buffer", "", "", "sent", "a.json:1:1"};
  CHECK(tensor_phrase(place, FindingKind::write_before_wait) ==
        "'buffer' written before 'sent' is waited for");
  CHECK(tensor_phrase(place, FindingKind::read_before_wait) == "'buffer' read before 'sent' is waited for");
  CHECK(tensors_title(FindingKind::free_before_wait) == "Freed too early");
  CHECK(tensors_title(FindingKind::stale_shard) == "Values");
}

}  // namespace rollcall::viz::text_report_test

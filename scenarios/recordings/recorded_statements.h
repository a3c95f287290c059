#pragma once

// Recorded calls as statements of a scenario.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/diagnose/dump_ops.h"

namespace rollcall::scenario {

struct RecordedProgramOptions {
  // Calls that were over do not hold up their rank: needed if ranks made them in different orders.
  bool async_when_over = false;
  // Calls have the line of the program that made them as a label, if it was recorded.
  bool labels = true;
};

// Text from a recording, with a question mark for everything that is not ASCII.
std::string plain_text(std::string text);

// All are borrowed: a short-lived object.
class RecordedStatements {
 public:
  // `groups`: the scenario's names for the job's groups.
  RecordedStatements(const check::JobDump& job, const std::vector<std::string>& groups,
                     const RecordedProgramOptions& options)
      : job_(job), groups_(groups), options_(options) {}

  // `over`: it was over when the job stopped.
  OrderedJson collective(const check::RankOps& ops, const check::DumpOp& op, bool over) const;
  // `waits`: for the other end.
  OrderedJson message(const check::DumpRecord& record, Rank peer, bool waits) const;
  // The same from the other side: the caller says whether it `sends`.
  OrderedJson message(const check::DumpRecord& record, bool sends, Rank peer, bool waits) const;
  // Named "batch", so that it can be waited for.
  OrderedJson batch(const std::vector<OrderedJson>& messages, const check::DumpRecord& record) const;

 private:
  void tell_where(const check::DumpRecord& record, OrderedJson& arguments) const;
  std::string label_of(const check::DumpRecord& record) const;

  const check::JobDump& job_;
  const std::vector<std::string>& groups_;
  const RecordedProgramOptions& options_;
};

}  // namespace rollcall::scenario

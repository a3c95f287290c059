#pragma once

// Diagnosis: why a job makes no progress, according to its recordings. Unlike a Verdict, it also says how sure it is,
// what the evidence is, and what would decide where the recordings cannot: they are incomplete by nature.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/blame.h"
#include "sim/report/source_line.h"
#include "sim/report/verdict.h"

namespace rollcall {

// Ranks that suffer from another rank's fault.
struct Victim {
  RankSet ranks;
  Call call;          // the call they wait in; its number is the recorder's
  RankSet waits_for;  // directly; `Finding::chain` leads on to the culprits
};

struct Diagnosis {
  using Confidence = rollcall::Confidence;

  std::vector<FindingKind> alternatives;  // kinds that fit the same recordings as well
  Confidence confidence = Confidence::high;
  // The only evidence is that ranks have not arrived yet, and nothing shows that time passed: a healthy job leaves the
  // same recordings within a step or in a pause. Not a verdict yet, and not an alarm. With no_fault: no evidence of
  // health.
  bool may_be_healthy = false;

  // Its kind is the verdict: no_fault, straggler, or what went wrong. Numbers of calls are the recorder's
  // collective_seq_id (or p2p_seq_id for messages). `at` is where the fault lies, `first_symptom_seq` the later call
  // in which it was noticed, or -1.
  Finding finding;
  std::int64_t first_symptom_seq = -1;
  bool is_message = false;        // `at` is a send, a receive or a batch of them
  std::string group_name;         // of `at`: "7"
  std::string group_description;  // "mesh_tp"
  RankSet group_ranks;
  std::vector<Variant> variants;  // calls that disagree, majority first

  std::vector<Victim> victims;
  std::vector<Victim> held;               // culprits that wait, too: in a cycle
  std::vector<std::string> evidence;      // one sentence each
  std::vector<std::string> would_settle;  // what to check next; empty when nothing is open

  Rank world_size = 0;   // as far as the recordings know
  RankSet without_dump;  // ranks that left none
  std::int64_t records = 0;

  std::vector<SourceLine> sources;  // by site; only those that could be read
};

// One that does not say yet where and why.
Diagnosis diagnosis_of(FindingKind kind, Confidence confidence, RankSet culprits);

// True if somebody has to act: a healthy job would not leave the same recordings.
bool is_alarm(const Diagnosis& diagnosis);

}  // namespace rollcall

#pragma once

// EditingBackend: a rank's backend, with some of its calls left out and others inserted. A run then shows what would
// have happened if the rank had made the calls of its peers. Calls are counted as NotingBackend lists them.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/c10d/forwarding_backend.h"
#include "sim/match/outlook.h"

namespace rollcall::check {

class EditingBackend final : public ForwardingBackend {
 public:
  // Applies those of `edits` that belong to `rank`. `inner` and `edits` are borrowed.
  EditingBackend(Backend& inner, const CallEdits& edits, Rank rank);

  // True if the rank has calls to make after its program has ended, or raised.
  bool goes_on() const;
  // True if the rank's last call is one that an edit replaced or left out.
  bool ends_at_edit() const;
  // Makes those calls.
  void finish();

  Work issue(const Op& op) override;
  void wait(const Work& work) override;
  void wait_for(const Work& work, Duration timeout) override;
  void wait_any(std::span<const Work> works) override;
  bool is_completed(const Work& work) override;
  bool drop(const Work& work) override;
  Rank source_of(const Work& work) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  ProcessGroup manage(GroupCall call) override;

 private:
  // Makes the calls inserted before the rank's next call. Returns true if that call itself is left out.
  bool pass();
  void call_instead(std::span<const ProgramCall> calls);
  ProcessGroup group_of(const ProgramCall& call);

  std::span<const CallEdit> edits_;  // by place
  std::size_t next_ = 0;             // of edits_
  std::int64_t calls_ = 0;           // so far
  std::int64_t left_out_until_ = 0;
  std::map<std::int64_t, ProcessGroup> made_;  // by the call that made them
};

}  // namespace rollcall::check

#pragma once

// CallNumbers: how many calls of one kind and size each rank makes on each group, and how many such messages it
// exchanges with each partner. All stages of a pipeline exchange equally many messages, and all pairs of replicas
// reduce equally often: where two ranks disagree, the others show who has made one call too many or too few.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "sim/repair/call_lists.h"

namespace rollcall::check {

class CallNumbers {
 public:
  // Borrows `lists`.
  explicit CallNumbers(const CallLists& lists);

  // True if the edits change how often ranks make calls, and then make each of these calls as often as all others do.
  // Other groups, or other partners, must show how often that is.
  bool become_usual(const CallEdits& edits) const;

 private:
  struct Place {
    Rank rank = 0;
    std::uint32_t group = 0;
    Rank peer = -1;  // of messages

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  using ByPlace = std::map<Place, std::int64_t>;
  using Numbers =
      std::map<std::tuple<OpKind, std::string, std::int64_t>, ByPlace>;  // by kind, dtype and elements

  static void count(Rank rank, const ProgramCall& call, const ListedCall& listed, std::int64_t times,
                    Numbers& numbers);
  static bool becomes_usual(const ByPlace& numbers, const ByPlace& changes);

  const CallLists& lists_;
  Numbers numbers_;
};

}  // namespace rollcall::check

// ProcessGroupGloo's monitoredBarrier: two rounds of messages between the first rank and each of the others.

#include <algorithm>
#include <chrono>

#include <gloo/common/error.h>

#include "real/gloo/gloo_group.h"
#include "real/gloo/translate.h"
#include "real/rank/recorder.h"
#include "sim/c10d/barrier_texts.h"

namespace rollcall::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A byte that goes one way, in one of Gloo's slots.
struct Word {
  explicit Word(gloo::Context& context) : buffer(context.createUnboundBuffer(&byte, sizeof byte)) {}

  char byte = 0;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
};

// With `wait_all_ranks` each rank gets the whole timeout, or none would be left for those after the first missing one.
void hear_from_all(gloo::Context& context, std::uint64_t slot, Duration timeout, bool wait_all_ranks) {
  const auto until = steady_clock::now() + in_milliseconds(timeout);
  std::vector<std::unique_ptr<Word>> words;
  for (Rank rank = 1; rank < context.size; ++rank) {
    words.push_back(std::make_unique<Word>(context));
    words.back()->buffer->recv(rank, slot);
  }
  std::vector<Rank> missing;
  for (Rank rank = 1; rank < context.size; ++rank) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    try {
      words[static_cast<std::size_t>(rank) - 1]->buffer->waitRecv(
          wait_all_ranks ? in_milliseconds(timeout) : std::max(left, milliseconds(1)));
    } catch (const gloo::IoException& error) {
      missing.push_back(rank);
      if (!wait_all_ranks) {
        throw LostPeerError(monitored_root_text(missing, false, timeout, error.what()));
      }
    }
  }
  if (!missing.empty()) {
    throw LostPeerError(monitored_root_text(missing, true, timeout, {}));
  }
}

void tell_all(gloo::Context& context, std::uint64_t slot, Duration timeout) {
  for (Rank rank = 1; rank < context.size; ++rank) {
    Word word(context);
    try {
      word.buffer->send(rank, slot);
      word.buffer->waitSend(in_milliseconds(timeout));
    } catch (const gloo::IoException& error) {
      throw LostPeerError(monitored_root_text({rank}, false, timeout, error.what()));
    }
  }
}

void report_to_root(gloo::Context& context, std::uint64_t there, std::uint64_t back, Duration timeout) {
  Word coming(context);
  Word going(context);
  try {
    going.buffer->send(0, there);
    going.buffer->waitSend(in_milliseconds(timeout));
    coming.buffer->recv(0, back);
    coming.buffer->waitRecv(in_milliseconds(timeout));
  } catch (const gloo::IoException& error) {
    throw LostPeerError(monitored_member_text(context.rank, error.what()));
  }
}

}  // namespace

void GlooGroup::monitored_barrier(Duration timeout, bool wait_all_ranks) {
  const auto there = static_cast<std::uint64_t>(collectives_++);
  const auto back = static_cast<std::uint64_t>(collectives_++);
  if (context_->rank != 0) {
    report_to_root(*context_, there, back, timeout);
    return;
  }
  hear_from_all(*context_, there, timeout, wait_all_ranks);
  tell_all(*context_, back, timeout);
}

}  // namespace rollcall::real

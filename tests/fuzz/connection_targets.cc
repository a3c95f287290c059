// Fuzz target for data from the connections between supervisors: real/launch/hub.h.

#include <optional>
#include <stdexcept>
#include <string>

#include "real/rank/encode_store.h"
#include "real/rank/frames.h"
#include "real/rank/greeting.h"
#include "real/rank/record.h"
#include "sim/c10d/store_state.h"
#include "tests/fuzz/targets.h"

namespace rollcall::fuzz {

namespace {

template <typename Read>
void or_refuse(const Read& read) {
  try {
    read();
  } catch (const std::runtime_error& refused) {
    // the error that ends the connection, or that the rank gets
  }
}

void serve_frames(std::string bytes) {
  StoreState store;
  while (const std::optional<real::Frame> frame = real::take_frame(bytes)) {
    const StoreCall call = decode_value<StoreCall>(frame->value);
    if (is_sound(call) && store.missing(call.keys).empty()) {
      store.apply(call);
    }
  }
}

void read_records(std::string_view bytes) {
  real::Decoder decoder;
  decoder.feed(bytes.data(), bytes.size());
  while (const std::optional<real::Record> record = decoder.next()) {
    real::encode(*record);
  }
}

}  // namespace

// Reads the bytes as a stranger's data, as store calls, and as a rank's log.
void read_connection(std::string_view bytes) {
  or_refuse([bytes] {
    std::string said(bytes);
    const std::optional<real::Packet> packet = real::take_packet(said, real::greeting_bytes_max);
    if (packet && real::welcome_to(packet->content, "a secret of this test", "rank", std::string(32, 'n'))) {
      throw std::logic_error("nobody can prove what he does not know");
    }
  });
  or_refuse([bytes] { serve_frames(std::string(bytes)); });
  or_refuse([bytes] { read_records(bytes); });
}

}  // namespace rollcall::fuzz

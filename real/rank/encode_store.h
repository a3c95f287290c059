#pragma once

// Encodes calls on the store as bytes (encoding.h). The op of a call is not sent: the store does not need it.

#include <concepts>
#include <type_traits>

#include "sim/base/encoding.h"
#include "sim/c10d/host_calls.h"

namespace rollcall {

template <typename Visitor, typename AnyCall>
requires std::same_as<std::remove_const_t<AnyCall>, StoreCall>
void visit(Visitor& visitor, AnyCall& call) {
  visitor(call.kind, call.keys, call.value, call.expected, call.amount, call.timeout, call.want);
}

template <typename Visitor, typename AnyReply>
requires std::same_as<std::remove_const_t<AnyReply>, StoreReply>
void visit(Visitor& visitor, AnyReply& reply) { visitor(reply.value, reply.number); }

}  // namespace rollcall

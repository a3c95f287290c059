#pragma once

// Handles programs that do not say when nccl created its communicators.

#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// Foreign formats and recordings do not show the calls that created communicators, or show them as separate calls. If
// `programs` (statements at any depth) send messages or split groups on nccl, the scenario begins with all
// communicators created.
void assume_communicators(const OrderedJson& programs, OrderedJson& scenario);

}  // namespace rollcall::scenario

#pragma once

// Programs that do not say when nccl made its communicators.

#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// Foreign formats and recordings say nothing of calls that made communicators, or say it in calls of their own. Where
// `programs` (statements at any depth) send messages or split groups on nccl, the scenario begins with all of them
// made.
void assume_communicators(const OrderedJson& programs, OrderedJson& scenario);

}  // namespace rollcall::scenario

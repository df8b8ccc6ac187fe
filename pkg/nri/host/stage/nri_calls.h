// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "pkg/model/request.h"
#include "pkg/pipeline/stage.h"

namespace resmgr::nri {

class NriStage;

// NriStage's calls, by their operations. Only for NriStage.

// nullptr: the operation does not concern plugins.
std::unique_ptr<StageCall> MakeNriCall(NriStage& stage, Operation operation);

std::unique_ptr<StageCall> MakeCreateCall(NriStage& stage);
std::unique_ptr<StageCall> MakeUpdateCall(NriStage& stage);

// A hold of a reply for functions that are copied: the client gets the reply when the last copy is
// gone, or an error at once when the hold fails.
using SharedHold = std::shared_ptr<ReplyHold>;

}  // namespace resmgr::nri

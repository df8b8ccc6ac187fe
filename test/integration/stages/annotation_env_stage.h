// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/pipeline/stage.h"

namespace resmgr::example {

// Sets environment variables of containers from annotations of their pod: "env.example.com/REGION:
// north" sets REGION=north.
class AnnotationEnvStage final : public Stage {
 public:
  AnnotationEnvStage();

  std::unique_ptr<StageCall> Begin(const Request& request) override;
};

}  // namespace resmgr::example

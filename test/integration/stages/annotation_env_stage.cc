// SPDX-License-Identifier: Apache-2.0
#include "test/integration/stages/annotation_env_stage.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

namespace resmgr::example {
namespace {

constexpr std::string_view kPrefix = "env.example.com/";

class AnnotationEnvCall final : public StageCall {
 public:
  using StageCall::StageCall;

  void Before(Request& request, const Adjustment&) override {
    const std::optional<Pod> pod = request.ReadPod();
    if (!pod) return Pass();
    Adjustment adjustment;
    for (const auto& [name, value] : pod->annotations) {
      if (!name.starts_with(kPrefix)) continue;
      adjustment.Wide().environment.Set(name.substr(kPrefix.size()), std::string(value));
    }
    Adjust(std::move(adjustment));
  }
};

}  // namespace

AnnotationEnvStage::AnnotationEnvStage()
    : Stage({.name = "annotation-env",
             .operations = {Operation::kCreateContainer},
             .deadline = std::chrono::seconds(1),
             .failure = FailurePolicy::kIgnore}) {}

std::unique_ptr<StageCall> AnnotationEnvStage::Begin(const Request&) {
  return std::make_unique<AnnotationEnvCall>(*this);
}

}  // namespace resmgr::example

// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_stage.h"

#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

class ClassCreation final : public StageCall {
 public:
  ClassCreation(Stage& stage, const ClassStage::Functions& functions)
      : StageCall(stage), functions_(functions) {}

  void Before(Request& request, const Adjustment&) override {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const Pod* pod = functions_.find(create->pod_id);
    std::optional<Pod> read;
    if (pod == nullptr) {
      read = create->pod ? create->pod : request.ReadPod();
      if (read) pod = &*read;
    }
    if (pod == nullptr) return Pass();
    StatusOr<Adjustment> adjustment = functions_.decide(*pod, *create);
    if (!adjustment.ok()) {
      return Refuse(Annotate(adjustment.status(),
                             fmt::format("container {}", Printable(FullName(*pod, create->name)))));
    }
    if (adjustment->empty()) return Pass();
    if (adjustment->wide() != nullptr && !adjustment->wide()->unified.empty())
      functions_.requested(request.Details({Detail::kResources}).unified);
    Adjust(*std::move(adjustment));
  }
  void After(Request&, const Outcome&) override { functions_.ended(); }

 private:
  const ClassStage::Functions& functions_;
};

class ClassStart final : public StageCall {
 public:
  ClassStart(Stage& stage, const ClassStage::Functions& functions)
      : StageCall(stage), functions_(functions) {}

  void Before(Request& request, const Adjustment&) override {
    auto later = std::make_shared<std::optional<LateAnswer>>();
    const auto go = [later] {
      if (*later) std::exchange(*later, std::nullopt)->Pass();
    };
    if (!functions_.hold(request.container_id, go)) return Pass();
    later->emplace(AnswerLater());
  }
  void After(Request&, const Outcome&) override { functions_.ended(); }

 private:
  const ClassStage::Functions& functions_;
};

class ClassUpdate final : public StageCall {
 public:
  ClassUpdate(Stage& stage, const ClassStage::Functions& functions)
      : StageCall(stage), functions_(functions) {}
  ~ClassUpdate() override {
    if (told_) functions_.updated(*this);
  }
  ClassUpdate(const ClassUpdate&) = delete;
  ClassUpdate& operator=(const ClassUpdate&) = delete;

  void Before(Request& request, const Adjustment& so_far) override {
    const auto* const update = std::get_if<ContainerUpdate>(&request.body);
    const std::optional<int64_t> requested =
        update == nullptr ? std::nullopt : update->resources.cpu_quota;
    const int64_t quota =
        so_far.values.cpu_quota ? *so_far.values.cpu_quota : requested.value_or(0);
    if (quota <= 0) return Pass();
    auto later = std::make_shared<std::optional<LateAnswer>>();
    const auto go = [later] {
      if (*later) std::exchange(*later, std::nullopt)->Pass();
    };
    told_ = true;
    if (!functions_.update(*this, request.container_id, quota, go)) return Pass();
    later->emplace(AnswerLater());
  }

 private:
  const ClassStage::Functions& functions_;
  bool told_ = false;
};

}  // namespace

ClassStage::ClassStage(Functions functions)
    : Stage({.name = "classes",
             .rank = StageRank::kProgram,
             .operations = {Operation::kCreateContainer, Operation::kStartContainer,
                            Operation::kUpdateContainerResources},
             .deadline = functions.patience,
             .failure = FailurePolicy::kIgnore,
             .sets_numbers = false}),
      functions_(std::move(functions)) {}

std::unique_ptr<StageCall> ClassStage::Begin(const Request& request) {
  if (request.operation() == Operation::kStartContainer)
    return std::make_unique<ClassStart>(*this, functions_);
  if (request.operation() == Operation::kUpdateContainerResources)
    return std::make_unique<ClassUpdate>(*this, functions_);
  return std::make_unique<ClassCreation>(*this, functions_);
}

}  // namespace resmgr

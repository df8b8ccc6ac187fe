// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_stage.h"

#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// A call of the stage, with the way to delay it.
class ClassCall : public StageCall {
 public:
  ClassCall(Stage& stage, ClassStage::Decider& decider) : StageCall(stage), decider_(decider) {}

 protected:
  // Passes the call on: later if `hold`, which gets the function that does so, returns true.
  void PassUnless(const std::function<bool(std::function<void()> go)>& hold) {
    auto later = std::make_shared<std::optional<LateAnswer>>();
    const auto go = [later] {
      if (*later) std::exchange(*later, std::nullopt)->Pass();
    };
    if (!hold(go)) return Pass();
    later->emplace(AnswerLater());
  }

  ClassStage::Decider& decider_;
};

class ClassCreation final : public ClassCall {
 public:
  using ClassCall::ClassCall;

  void Before(Request& request, const Adjustment&) override {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const Pod* pod = decider_.FindPod(create->pod_id);
    std::optional<Pod> read;
    if (pod == nullptr) {
      read = create->pod ? create->pod : request.ReadPod();
      if (read) pod = &*read;
    }
    if (pod == nullptr) return Pass();
    const auto files = [&request]() -> const StringMap& {
      return request.Details({Detail::kResources}).unified;
    };
    StatusOr<Adjustment> adjustment = decider_.AtCreation(*pod, *create, files);
    if (!adjustment.ok()) {
      return Refuse(Annotate(adjustment.status(),
                             fmt::format("container {}", Printable(FullName(*pod, create->name)))));
    }
    if (adjustment->empty()) return Pass();
    Adjust(*std::move(adjustment));
  }
  void After(Request&, const Outcome&) override { decider_.NoteEnd(); }
};

class ClassStart final : public ClassCall {
 public:
  using ClassCall::ClassCall;

  void Before(Request& request, const Adjustment&) override {
    PassUnless([&](auto go) { return decider_.HoldStart(request.container_id, std::move(go)); });
  }
  void After(Request&, const Outcome&) override { decider_.NoteEnd(); }
};

class ClassUpdate final : public ClassCall {
 public:
  using ClassCall::ClassCall;
  ~ClassUpdate() override {
    if (told_) decider_.EndUpdate(*this);
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
    told_ = true;
    PassUnless([&](auto go) {
      return decider_.HoldUpdate(*this, request.container_id, quota, std::move(go));
    });
  }

 private:
  bool told_ = false;
};

}  // namespace

ClassStage::ClassStage(Decider& decider, std::chrono::milliseconds patience)
    : Stage({.name = "classes",
             .rank = StageRank::kProgram,
             .operations = {Operation::kCreateContainer, Operation::kStartContainer,
                            Operation::kUpdateContainerResources},
             .deadline = patience,
             .failure = FailurePolicy::kIgnore,
             .sets_numbers = false}),
      decider_(decider) {}

std::unique_ptr<StageCall> ClassStage::Begin(const Request& request) {
  if (request.operation() == Operation::kStartContainer)
    return std::make_unique<ClassStart>(*this, decider_);
  if (request.operation() == Operation::kUpdateContainerResources)
    return std::make_unique<ClassUpdate>(*this, decider_);
  return std::make_unique<ClassCreation>(*this, decider_);
}

}  // namespace resmgr

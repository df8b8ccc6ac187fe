// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/model/request.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/pipeline_call.h"
#include "pkg/pipeline/stage.h"

namespace resmgr::test {

// A stage of which each test says what it does.
class FunctionStage : public Stage {
 public:
  class TestCall;
  using BeforeFunction = std::function<void(TestCall& call, Request& request, const Adjustment&)>;
  using AfterFunction = std::function<void(TestCall& call, const Outcome& outcome)>;

  explicit FunctionStage(Options stage_options, BeforeFunction does = nullptr)
      : Stage(std::move(stage_options)), before(std::move(does)) {}

  BeforeFunction before;
  AfterFunction after;
  bool owns_placement = false;
  int rolled_back = 0;
  std::function<void(const Status& why)> refused{};
  std::function<std::string(const FieldChange& change)> plugin_of{};
  std::vector<std::string> left_out{};

  std::unique_ptr<StageCall> Begin(const Request&) override;
  bool OwnsPlacement() const override { return owns_placement; }
};

class FunctionStage::TestCall final : public StageCall {
 public:
  explicit TestCall(FunctionStage& stage) : StageCall(stage), owner_(stage) {}
  using StageCall::Adjust;
  using StageCall::AnswerLater;
  using StageCall::Fail;
  using StageCall::FailReply;
  using StageCall::HoldReply;
  using StageCall::Pass;
  using StageCall::Refuse;

  void Before(Request& request, const Adjustment& so_far) override {
    if (owner_.before == nullptr) return Pass();
    owner_.before(*this, request, so_far);
  }
  void Refused(const Status& why) override {
    if (owner_.refused) owner_.refused(why);
  }
  std::string PluginOf(const FieldChange& change) const override {
    return owner_.plugin_of ? owner_.plugin_of(change) : std::string();
  }
  std::vector<std::string> LeftOut() const override { return owner_.left_out; }
  void RollBack() override { ++owner_.rolled_back; }
  void After(Request&, const Outcome& outcome) override {
    if (owner_.after != nullptr) owner_.after(*this, outcome);
  }

 private:
  FunctionStage& owner_;
};

inline std::unique_ptr<StageCall> FunctionStage::Begin(const Request&) {
  return std::make_unique<TestCall>(*this);
}

// A call, the results that its front gets, and the details of its message. Its protocol has a place
// for every field.
class TestCall final : private Request::Source, private PipelineCall::Front {
 public:
  TestCall(Pipeline& pipeline, Operation operation)
      : request(operation, static_cast<Request::Source&>(*this)),
        call(pipeline, static_cast<PipelineCall::Front&>(*this)) {}

  void Start() { call.Start(request); }
  // Whether the client may have the reply at once.
  bool Reply(int code, std::string_view id = {}) {
    const bool at_once = call.OnReply({.code = code, .id = id});
    reply_seen = reply_seen || at_once;
    return at_once;
  }
  bool passed() const { return decided.has_value() && decided->ok(); }

  ContainerDetails details;
  Request request;
  std::optional<Status> decided;
  ResourceValues values;
  std::optional<WideAdjustment> wide;
  bool reply_seen = false;
  PipelineCall call;

 private:
  bool ReadCreate(CreateRequest&) override { return false; }
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet, ContainerDetails& into) override {
    into = details;
    return true;
  }
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override {
    decided = refusal;
    values = adjustment.values;
    if (adjustment.wide() != nullptr) wide = *adjustment.wide();
  }
  void OnReplySeen() override { reply_seen = true; }
  bool Has(Operation, Field) const override { return true; }
};

}  // namespace resmgr::test

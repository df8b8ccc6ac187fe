// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace resmgr::test

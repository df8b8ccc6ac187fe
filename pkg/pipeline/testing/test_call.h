// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/model/request.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/pipeline_call.h"

namespace resmgr::test {

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

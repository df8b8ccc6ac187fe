// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "pkg/nri/convert.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/pipeline_call.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::nri {

// One event of a runtime on its way through the pipeline. The runtime carries out the answer and
// reports a failure by later events, so the stages see a success as soon as the answer is given.
// Loop's thread only.
class EventCall final : private PipelineCall::Front, private Request::Source {
 public:
  // The answer: a refusal, or changes of the event's container.
  struct Decision {
    Status refusal;
    const Adjustment& adjustment;
  };
  using Decided = std::function<void(const Decision&)>;

  // The pipeline outlives the call. `details` belong to a container that is to be created.
  EventCall(Pipeline& pipeline, Operation operation, ContainerDetails details = {});
  ~EventCall() { Abandon(); }
  EventCall(const EventCall&) = delete;
  EventCall& operator=(const EventCall&) = delete;

  // Must be filled in before Start.
  Request& request() { return request_; }
  // Sets the id of the event's pod sandbox or container.
  void SetId(std::string id) { id_ = std::move(id); }

  // Calls `decided` and then `over`, each once, at once or later; `over` may destroy this object.
  void Start(Decided decided, std::function<void()> over);
  // See PipelineCall::HurryOptional. The event may be decided within the call.
  void HurryOptional() { call_.HurryOptional(); }
  // Gives the decision up; neither function runs after that.
  void Abandon();

 private:
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override;
  void OnReplySeen() override { End(); }
  bool Has(Operation operation, Field field) const override { return NriHas(operation, field); }
  // An NRI adjustment that names no list leaves the runtime's list in place, so a list cannot be
  // cleared.
  bool ClearsPlacement() const override { return false; }
  bool RemovesFiles() const override { return false; }
  void End();

  bool ReadCreate(CreateRequest& create) override;
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override;

  const ContainerDetails details_;
  CreateRequest create_;  // a copy, since a stage may move the request's own away
  std::string id_;
  Decided decided_;
  std::function<void()> over_;
  Request request_;
  PipelineCall call_;
};

}  // namespace resmgr::nri

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

// One event of a runtime on its way through the pipeline. The runtime carries out what it is
// answered and tells of a failure by later events, so the stages are told of success as soon as the
// answer is given. Loop's thread only.
class EventCall final : private PipelineCall::Front, private Request::Source {
 public:
  // What is to be answered: a refusal, or changes of the event's container.
  struct Decision {
    Status refusal;
    const Adjustment& adjustment;
  };
  using Decided = std::function<void(const Decision&)>;

  // The pipeline outlives the call. `details` are those of a container that is to be created.
  EventCall(Pipeline& pipeline, Operation operation, ContainerDetails details = {});
  ~EventCall() { Abandon(); }
  EventCall(const EventCall&) = delete;
  EventCall& operator=(const EventCall&) = delete;

  // To be filled in before Start.
  Request& request() { return request_; }
  // The id that the pod sandbox or container of the event has.
  void SetId(std::string id) { id_ = std::move(id); }

  // `decided` and then `over` are run, each once, at once or later; `over` may destroy this.
  void Start(Decided decided, std::function<void()> over);
  // The decision is not needed any more; neither function runs after that.
  void Abandon();

 private:
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override;
  void OnReplySeen() override { End(); }
  bool Has(Operation operation, Field field) const override { return NriHas(operation, field); }
  // In an adjustment of NRI no list means that the runtime keeps its own.
  bool ClearsPlacement() const override { return false; }
  bool RemovesFiles() const override { return false; }
  void End();

  bool ReadCreate(CreateRequest& create) override;
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override;

  const ContainerDetails details_;
  CreateRequest create_;  // a stage may move the request's away
  std::string id_;
  Decided decided_;
  std::function<void()> over_;
  Request request_;
  PipelineCall call_;
};

}  // namespace resmgr::nri

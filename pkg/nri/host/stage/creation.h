// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/nri/host/mapping/adjustment_mapping.h"
#include "pkg/nri/host/mapping/change_owners.h"
#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/host/session/dispatch.h"
#include "pkg/nri/host/session/turns.h"
#include "pkg/nri/host/stage/nri_calls.h"
#include "pkg/nri/host/view/host_view.h"
#include "pkg/nri/host/view/planned_container.h"

namespace resmgr::nri {

class NriStage;

// One container's creation and its plugins. They are asked one after the other, and each sees the
// changes of those before it; then validators see the result, updates of other containers are
// carried out, and the request is changed. If the client goes away, this object outlives the call:
// plugins that have heard of the container must hear of its end. Kept alive by its pending
// callbacks. Loop's thread only.
class Creation final : public std::enable_shared_from_this<Creation> {
 public:
  Creation(NriStage& stage, std::shared_ptr<PlannedContainer> planned, const HostPodPtr& pod);

  // An error refuses the creation.
  using Done = std::function<void(StatusOr<Adjustment>)>;
  void Begin(Done done);
  // The runtime has created it. The client waits until the plugins have heard of it.
  void Succeed(const ContainerId& id, const SharedHold& hold);
  // Called when it was refused, or the client went away before the runtime was asked.
  void Undo();
  // Whether the runtime refused the container because it has no RDT for the class in the request.
  bool RefusedWithoutRdt(std::string_view message) const;
  std::string PluginOf(const FieldChange& change) const { return PluginBehind(owners_, change); }
  // Lines about changes that the request cannot express.
  const std::vector<std::string>& left_out() const { return left_out_; }
  // Asks the runtime whether it has created the container.
  void Clarify();

 private:
  // The steps; each begins the next one.
  void ShowImage(const ImageFacts& image);
  void AskPlugins(const Turns::Turn& turn);
  void AskPlugin(HostedPlugin& plugin, std::chrono::milliseconds timeout,
                 Dispatcher::Answered answered);
  void Validate(const Turns::Turn& turn);
  void Map(const Turns::Turn& turn);
  void FindFiles(MappedAdjustment mapped, const Turns::Turn& turn);
  void UpdateOthers(MappedAdjustment mapped, const Turns::Turn& turn);
  void ForgetFiles();
  Status RunDefaultValidator() const;
  MappingContext Context() const;
  void Answer(StatusOr<Adjustment> answer);
  // Replaces the container's view by the created one, which plugins see from now on.
  void Adopt();

  NriStage& stage_;
  const std::shared_ptr<PlannedContainer> planned_;
  const HostContainerPtr container_;
  RuntimeTraits traits_;
  std::optional<AdjustmentMerge> merge_;
  std::vector<std::string> consulted_;  // plugins that have answered
  Done done_;
  std::vector<OwnedField> owners_;
  std::vector<std::string> left_out_;
  std::string sent_class_;  // RDT class in the request; empty: none
  std::optional<FoundFiles> files_;
  const Budget budget_;
  bool abandoned_ = false;
};

}  // namespace resmgr::nri

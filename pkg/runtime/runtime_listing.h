// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// One list of everything that a runtime has, over whatever protocol: the listed objects, then the
// verbose status of those that are not known. Its callbacks keep it alive. Loop's thread only.
class RuntimeListing : public std::enable_shared_from_this<RuntimeListing> {
 public:
  template <typename Value>
  using Done = std::function<void(StatusOr<Value>)>;

  struct Objects {
    std::vector<SandboxFacts> sandboxes;
    std::vector<ContainerFacts> containers;
  };
  // Objects in the order of the list; those without a status have only the facts of the list.
  struct Result : Objects {
    RuntimeInventory::Unclear unclear;
    RuntimeInventory::Brief brief;
    // Objects that disappeared after the list.
    std::set<PodSandboxId> gone_pods;
    std::set<ContainerId> gone_containers;

    // The resource manager's form, with the objects that disappeared.
    RuntimeInventory ToInventory() &&;
    // The stages' form, without the objects that disappeared.
    RuntimeAccess::Everything ToEverything() &&;
  };

  // A protocol's questions. They answer once, and never inside the call.
  struct Questions {
    std::function<void(Done<Objects>)> list;
    // Add the status to the listed facts. kNotFound: the object has disappeared.
    template <typename Facts>
    using AddStatus = std::function<void(Facts& listed, std::function<void(const Status&)> done)>;
    AddStatus<SandboxFacts> sandbox;
    AddStatus<ContainerFacts> container;
    // Whether kUnavailable of one status tells that the connection is lost, so that the list fails.
    bool unavailable_is_loss = false;
  };

  static void Start(Questions questions, Known known, Done<Result> done);

 private:
  RuntimeListing(Questions questions, Known known, Done<Result> done)
      : questions_(std::move(questions)), known_(std::move(known)), done_(std::move(done)) {}

  void Take(StatusOr<Objects> listed);
  template <typename Facts, typename RuntimeId>
  void Plan(const Questions::AddStatus<Facts>& question, Facts& facts, const RuntimeId& id,
            std::set<RuntimeId>& unclear, std::set<RuntimeId>& gone);
  void AskNext();
  void OnAnswer(const Status& status);

  const Questions questions_;
  const Known known_;
  Done<Result> done_;  // until the end
  Result result_;
  std::vector<std::function<void()>> asks_;  // one for each status
  size_t next_ = 0;
  size_t left_ = 0;
};

}  // namespace resmgr

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "pkg/admin/node_json.h"
#include "pkg/base/json.h"
#include "pkg/base/status.h"
#include "pkg/node/node_view.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Parts that the methods of the admin socket have in common, pure functions of request and node.

// InvalidArgument if the request has no text under this key.
StatusOr<std::string> TextOf(const nlohmann::json& request, const char* key);
// "" if the request lacks the key; InvalidArgument if its value is not a text.
StatusOr<std::string> TextOrNone(const nlohmann::json& request, const char* key);
// Whether the request has the key with the boolean true.
bool IsTrue(const nlohmann::json& request, const char* key);
// The CPUs of the list; all CPUs of the machine if it is empty. NotFound: the machine lacks some.
StatusOr<CpuSet> ChosenCpus(const Machine& machine, const std::string& list);
// The choice by "namespace" and "selector", both optional. InvalidArgument: they cannot be read.
StatusOr<ContainerChoice> ChoiceOf(const nlohmann::json& request);

// Whether hook servers or plugins look at calls.
bool StagesAtWork(const NodeView& node);
// The node's resource manager; FailedPrecondition while the null policy is active.
StatusOr<ResourceManager*> Manager(const NodeView& node);
// Under the null policy: the resource manager that is releasing containers from the choice of a
// former policy. nullptr if all are released, and under other policies.
const ResourceManager* Releasing(const NodeView& node);
// Why the daemon knows no containers: "the runtime is not connected (…)"; "" if it knows some, or
// has looked and there are none.
std::string WhyNoneIsKnown(const NodeView& node);

// Holds questions about containers back while a daemon that has just started reads the containers
// from the runtime: an earlier answer would say that there are none, and that a configuration takes
// no CPUs away. After kLongest from the start the answer tells what is known, since a runtime may
// be away for long. Loop's thread only.
class FirstLook {
 public:
  static constexpr std::chrono::milliseconds kLongest{2'000};

  // Counts the time from now. The node must outlive this object.
  explicit FirstLook(const NodeView& node) : node_(node) {}
  FirstLook(const FirstLook&) = delete;
  FirstLook& operator=(const FirstLook&) = delete;

  // Runs the task at once if the first look is over, else as soon as it is.
  void Then(EventLoop::Task task);

 private:
  bool IsOver();
  void Look();

  const NodeView& node_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool over_ = false;
  std::vector<EventLoop::Task> waiting_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "pkg/base/status.h"
#include "test/bench/load_client.h"

namespace resmgr::bench {

// A kind of call at one concurrency, and what it may cost in comparison with the byte relay.
struct Scenario {
  std::string name;
  std::string method;
  int concurrency = 1;
  int calls = 0;  // per round and candidate
  std::function<grpc::ByteBuffer(int)> request = {};
  bool creates = false;  // containers, to be removed after the measurement
  std::optional<double> added_limit = {};
  std::optional<double> cpu_limit = {};
};

// All of them, `calls` scaled by the factor. Targets are the project's promises.
std::vector<Scenario> AllScenarios(double factor);

// The path of a method of runtime.v1.
std::string RuntimePath(const std::string& method);

// A create request of 4 KB whose container's name has this number; BestEffort, so that the static
// policy finds a place for any number of them.
grpc::ByteBuffer CreateRequest(int number);
grpc::ByteBuffer ListRequest(int containers);

// The pod that CreateRequest's containers belong to.
Status RunPod(LoadClient& client);
// Creates and starts this number of CreateRequest's containers; returns their ids.
StatusOr<std::vector<std::string>> RunContainers(LoadClient& client, int count);
// Removes the containers of these CreateContainer replies, without stopping them.
Status RemoveContainers(LoadClient& client, const std::vector<std::string>& replies);

}  // namespace resmgr::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/support/status.h>

#include "test/support/fake_runtime/cri_store.h"

namespace resmgr::test {

struct MethodReply {
  grpc::Status status;
  std::vector<std::string> messages;
};

using CriMethod = MethodReply (*)(CriStore& store, std::string_view request);

// The method behind a gRPC path of either version of either service, nullptr when there is none
// (GetContainerEvents is not among them: it does not end). Undecodable requests get INTERNAL, as
// from a Go server.
CriMethod FindCriMethod(std::string_view path);

// "CreateContainer" of "/runtime.v1.RuntimeService/CreateContainer".
std::string_view MethodName(std::string_view path);

}  // namespace resmgr::test

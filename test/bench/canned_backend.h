// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <grpcpp/support/byte_buffer.h>

#include "pkg/base/status.h"
#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::bench {

// The id that a request for a list of `containers` containers filters by.
std::string ListFilterId(int containers);

// The one image that there is.
inline constexpr char kImageId[] =
    "sha256:9f8ba3b7d5a4f1c2e6d0b1a2938475665748392a1b0c9d8e7f6a5b4c3d2e1f00";

// A runtime with prepared answers, so that it costs as little as a gRPC C++ server can. It holds
// nothing: lists are empty but for the ones asked for by ListFilterId, created containers get ids
// of their own, every other method of the CRI gets an empty message.
class CannedBackend final : private test::CallHandler {
 public:
  CannedBackend();

  // Serves until SIGTERM; the exit code of the process.
  int Run(const std::string& socket_path);

 private:
  void OnCall(const test::ServerCallPtr& call) override;
  void OnMessage(const test::ServerCallPtr& call, const grpc::ByteBuffer& message) override;
  void OnHalfClosed(const test::ServerCallPtr& call) override;
  void OnEnd(const test::ServerCallPtr& call, bool cancelled) override;

  grpc::ByteBuffer ListReply(const grpc::ByteBuffer& request) const;

  std::map<std::string, grpc::ByteBuffer> replies_;  // by method
  std::map<std::string, grpc::ByteBuffer> lists_;    // by filter id
  uint64_t next_container_ = 1;
};

}  // namespace resmgr::bench

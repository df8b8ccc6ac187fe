// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <grpcpp/support/byte_buffer.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/status.h"
#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::bench {

// The id that a request for a list of `containers` containers filters by.
std::string ListFilterId(int containers);

// The one image that there is.
inline constexpr char kImageId[] =
    "sha256:9f8ba3b7d5a4f1c2e6d0b1a2938475665748392a1b0c9d8e7f6a5b4c3d2e1f00";

// A runtime with prepared answers, so that it costs as little as a gRPC C++ server can. It keeps
// the requests that created the containers and the pod, and reads them only for a status or a list,
// which has those that were not removed, or the one that ListFilterId names. Every other method of
// the CRI gets an empty message.
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

  struct Container {
    grpc::ByteBuffer request;  // that created it
    runtime::v1::ContainerState state = runtime::v1::CONTAINER_CREATED;
  };

  grpc::ByteBuffer Create(const grpc::ByteBuffer& request);
  // Carries out a StartContainer, StopContainer or RemoveContainer.
  void Change(std::string_view method, const grpc::ByteBuffer& request);
  grpc::ByteBuffer ListContainers(const grpc::ByteBuffer& request) const;
  grpc::ByteBuffer ListPods() const;
  grpc::ByteBuffer PodStatus() const;
  grpc::ByteBuffer ContainerStatus(const grpc::ByteBuffer& request) const;

  std::map<std::string, grpc::ByteBuffer, std::less<>> replies_;  // by method
  std::map<std::string, grpc::ByteBuffer> lists_;                 // by filter id
  std::map<std::string, Container> containers_;                   // by id
  std::optional<grpc::ByteBuffer> pod_;  // the last RunPodSandbox; all get the same id
  uint64_t next_container_ = 1;
};

}  // namespace resmgr::bench

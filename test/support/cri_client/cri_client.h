// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/status.h"
#include "test/support/cri_client/pending_call.h"

namespace resmgr::test {

namespace cri = ::runtime::v1;

// Both versions have the same messages, as far as the older one knows them.
enum class ApiVersion { kV1, kV1Alpha2 };

// The calls that a client sends again: none, or those that the server reported as not looked at, as
// kubelets do (gRPC calls that transparent).
enum class Retries { kNone, kTransparent };

// A small client of a CRI socket: typed calls by method name, calls in bytes by path, one
// connection. Messages of any size. Thread-safe.
class CriClient {
 public:
  explicit CriClient(const std::string& socket_path, ApiVersion version = ApiVersion::kV1,
                     Retries retries = Retries::kNone);

  ApiVersion version() const { return version_; }
  // "/runtime.v1.RuntimeService/Version"; methods about images go to the ImageService.
  std::string PathOf(std::string_view method) const;

  // Makes a call with encoded messages: sends all of them, then the end of the client's stream.
  CallResult Call(const std::string& path, const std::vector<std::string>& messages,
                  const CallOptions& options = {});
  // Opens the stream and sends nothing yet.
  std::unique_ptr<PendingCall> Open(const std::string& path, const CallOptions& options = {});
  // Sends the one message and the end of the stream; the answer is awaited elsewhere.
  std::unique_ptr<PendingCall> Start(const std::string& path, std::string_view message,
                                     const CallOptions& options = {});
  std::unique_ptr<PendingCall> Start(std::string_view method,
                                     const google::protobuf::MessageLite& request,
                                     const CallOptions& options = {});

  // A unary method by name: Unary("Version", request, &response).
  grpc::Status Unary(std::string_view method, const google::protobuf::MessageLite& request,
                     google::protobuf::MessageLite* response, const CallOptions& options = {});

  // The usual life of pods and containers; errors carry the server's code and message.
  StatusOr<std::string> RunPod(const cri::PodSandboxConfig& config,
                               const std::string& runtime_handler = "");
  Status StopPod(const std::string& pod_id);
  Status RemovePod(const std::string& pod_id);
  StatusOr<std::string> CreateContainer(const std::string& pod_id, const cri::PodSandboxConfig& pod,
                                        const cri::ContainerConfig& container);
  Status StartContainer(const std::string& id);
  Status StopContainer(const std::string& id);
  Status RemoveContainer(const std::string& id);
  Status UpdateContainer(const std::string& id, const cri::LinuxContainerResources& resources);
  StatusOr<cri::ContainerStatus> ContainerStatus(const std::string& id);
  StatusOr<cri::ExecSyncResponse> Exec(const std::string& id,
                                       const std::vector<std::string>& command);
  // "Cpus_allowed_list" and "Mems_allowed_list" of /proc/self/status, read inside the running
  // container.
  StatusOr<std::string> AllowedCpus(const std::string& id);
  StatusOr<std::string> AllowedMems(const std::string& id);

 private:
  // The line of /proc/self/status with this key inside the running container.
  StatusOr<std::string> StatusLine(const std::string& id, std::string_view key);
  Status Do(std::string_view method, const google::protobuf::MessageLite& request,
            google::protobuf::MessageLite* response);

  const ApiVersion version_;
  std::shared_ptr<grpc::Channel> channel_;
};

// The same code and message; details are lost.
Status FromGrpc(const grpc::Status& status);

}  // namespace resmgr::test

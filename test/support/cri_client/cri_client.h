// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/status.h"

namespace resmgr::test {

using Metadata = std::multimap<std::string, std::string>;

struct CallOptions {
  Metadata metadata = {};
  // The deadline that the server is told, from now.
  std::chrono::milliseconds timeout{120'000};
  bool gzip = false;
  // Stops reading after this many messages until ResumeReading; -1 reads all.
  int pause_after = -1;
};

struct CallResult {
  grpc::Status status;
  std::vector<std::string> messages;
  Metadata headers;
  Metadata trailers;
};

// One call in bytes, running on a thread of its own. Thread-safe.
class PendingCall {
 public:
  PendingCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
              const CallOptions& options);
  // Cancels it where it still runs.
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  // Sends one message; returns when flow control took it. False when the call is over.
  bool Send(std::string_view message);
  void HalfClose();
  void Cancel() { context_.TryCancel(); }
  void ResumeReading();

  bool WaitForMessages(size_t count, std::chrono::milliseconds timeout);
  // nullopt when it still runs after the timeout.
  std::optional<CallResult> Wait(std::chrono::milliseconds timeout);

 private:
  void Run();
  // Both are called with the mutex held.
  void OnOpened(bool ok);
  void OnRead(bool ok);
  void ReadNext();
  void CollectResult();

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;

  std::mutex mutex_;
  std::condition_variable changed_;
  CallResult result_;
  int read_limit_;
  bool open_ = false;
  bool paused_ = false;
  bool writing_ = false;
  bool write_failed_ = false;
  bool reads_over_ = false;
  bool done_ = false;
  std::thread thread_;
};

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

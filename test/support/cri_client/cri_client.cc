// SPDX-License-Identifier: Apache-2.0
#include "test/support/cri_client/cri_client.h"

#include "pkg/base/parse.h"
#include "test/support/byte_buffer.h"

namespace resmgr::test {
namespace {

// Longer than any call may take; PendingCall's own timeout ends it before.
constexpr std::chrono::hours kForever{1};

// Reconnects soon after a server came back.
constexpr int kFirstBackoffMs = 20;
constexpr int kLastBackoffMs = 100;
// The time limit of one try to connect, although gRPC names it after back-off.
constexpr int kConnectTimeoutMs = 20'000;

std::shared_ptr<grpc::Channel> Connect(const std::string& socket_path, Retries retries) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, retries == Retries::kTransparent ? 1 : 0);
  // Each client has a connection of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastBackoffMs);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                   arguments);
}

// The operation that a completion belongs to; the queue carries it as a pointer.
enum Operation : char { kOpen, kRead, kWrite, kFinish, kOperations };
constexpr char kTags[kOperations] = {};

void* TagOf(Operation operation) {
  return const_cast<char*>(&kTags[operation]);
}

Metadata Copy(const std::multimap<grpc::string_ref, grpc::string_ref>& from) {
  Metadata to;
  for (const auto& [key, value] : from) {
    to.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  return to;
}

}  // namespace

Status FromGrpc(const grpc::Status& status) {
  return MakeStatus(static_cast<StatusCode>(status.error_code()), status.error_message());
}

CriClient::CriClient(const std::string& socket_path, ApiVersion version, Retries retries)
    : version_(version), channel_(Connect(socket_path, retries)) {}

std::string CriClient::PathOf(std::string_view method) const {
  std::string path = version_ == ApiVersion::kV1 ? "/runtime.v1." : "/runtime.v1alpha2.";
  path += method.find("Image") == std::string_view::npos ? "RuntimeService/" : "ImageService/";
  return path.append(method);
}

std::unique_ptr<PendingCall> CriClient::Open(const std::string& path, const CallOptions& options) {
  return std::make_unique<PendingCall>(channel_, path, options);
}

std::unique_ptr<PendingCall> CriClient::Start(const std::string& path, std::string_view message,
                                              const CallOptions& options) {
  auto call = Open(path, options);
  call->Send(message);
  call->HalfClose();
  return call;
}

std::unique_ptr<PendingCall> CriClient::Start(std::string_view method,
                                              const google::protobuf::MessageLite& request,
                                              const CallOptions& options) {
  return Start(PathOf(method), request.SerializeAsString(), options);
}

CallResult CriClient::Call(const std::string& path, const std::vector<std::string>& messages,
                           const CallOptions& options) {
  const auto call = Open(path, options);
  for (const std::string& message : messages) {
    if (!call->Send(message)) break;
  }
  call->HalfClose();
  return *call->Wait(kForever);
}

grpc::Status CriClient::Unary(std::string_view method, const google::protobuf::MessageLite& request,
                              google::protobuf::MessageLite* response, const CallOptions& options) {
  const CallResult result = Call(PathOf(method), {request.SerializeAsString()}, options);
  if (!result.status.ok()) return result.status;
  if (result.messages.size() != 1 || !response->ParseFromString(result.messages[0])) {
    return {grpc::StatusCode::INTERNAL, "the reply is not one message of the expected type"};
  }
  return grpc::Status::OK;
}

Status CriClient::Do(std::string_view method, const google::protobuf::MessageLite& request,
                     google::protobuf::MessageLite* response) {
  Status status = FromGrpc(Unary(method, request, response));
  // gRPC's own error, which does not name the call.
  if (status.code() == StatusCode::kDeadlineExceeded) return Annotate(status, method);
  return status;
}

StatusOr<std::string> CriClient::RunPod(const cri::PodSandboxConfig& config,
                                        const std::string& runtime_handler) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = config;
  request.set_runtime_handler(runtime_handler);
  cri::RunPodSandboxResponse response;
  RESMGR_RETURN_IF_ERROR(Do("RunPodSandbox", request, &response));
  return response.pod_sandbox_id();
}

Status CriClient::StopPod(const std::string& pod_id) {
  cri::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(pod_id);
  cri::StopPodSandboxResponse response;
  return Do("StopPodSandbox", request, &response);
}

Status CriClient::RemovePod(const std::string& pod_id) {
  cri::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(pod_id);
  cri::RemovePodSandboxResponse response;
  return Do("RemovePodSandbox", request, &response);
}

StatusOr<std::string> CriClient::CreateContainer(const std::string& pod_id,
                                                 const cri::PodSandboxConfig& pod,
                                                 const cri::ContainerConfig& container) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod_id);
  *request.mutable_config() = container;
  *request.mutable_sandbox_config() = pod;
  cri::CreateContainerResponse response;
  RESMGR_RETURN_IF_ERROR(Do("CreateContainer", request, &response));
  return response.container_id();
}

Status CriClient::StartContainer(const std::string& id) {
  cri::StartContainerRequest request;
  request.set_container_id(id);
  cri::StartContainerResponse response;
  return Do("StartContainer", request, &response);
}

Status CriClient::StopContainer(const std::string& id) {
  cri::StopContainerRequest request;
  request.set_container_id(id);
  cri::StopContainerResponse response;
  return Do("StopContainer", request, &response);
}

Status CriClient::RemoveContainer(const std::string& id) {
  cri::RemoveContainerRequest request;
  request.set_container_id(id);
  cri::RemoveContainerResponse response;
  return Do("RemoveContainer", request, &response);
}

Status CriClient::UpdateContainer(const std::string& id,
                                  const cri::LinuxContainerResources& resources) {
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  *request.mutable_linux() = resources;
  cri::UpdateContainerResourcesResponse response;
  return Do("UpdateContainerResources", request, &response);
}

StatusOr<cri::ContainerStatus> CriClient::ContainerStatus(const std::string& id) {
  cri::ContainerStatusRequest request;
  request.set_container_id(id);
  cri::ContainerStatusResponse response;
  RESMGR_RETURN_IF_ERROR(Do("ContainerStatus", request, &response));
  return response.status();
}

StatusOr<cri::ExecSyncResponse> CriClient::Exec(const std::string& id,
                                                const std::vector<std::string>& command) {
  cri::ExecSyncRequest request;
  request.set_container_id(id);
  for (const std::string& word : command)
    request.add_cmd(word);
  cri::ExecSyncResponse response;
  RESMGR_RETURN_IF_ERROR(Do("ExecSync", request, &response));
  return response;
}

StatusOr<std::string> CriClient::AllowedCpus(const std::string& id) {
  return StatusLine(id, "Cpus_allowed_list:");
}

StatusOr<std::string> CriClient::AllowedMems(const std::string& id) {
  return StatusLine(id, "Mems_allowed_list:");
}

StatusOr<std::string> CriClient::StatusLine(const std::string& id, std::string_view key) {
  RESMGR_ASSIGN_OR_RETURN(const cri::ExecSyncResponse response,
                          Exec(id, {"cat", "/proc/self/status"}));
  for (const std::string_view line : Split(response.stdout(), '\n')) {
    if (line.starts_with(key)) return std::string(Trim(line.substr(key.size())));
  }
  return NotFound("no {} in the output of container {}", key, id);
}

PendingCall::PendingCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                         const CallOptions& options)
    : stub_(channel), read_limit_(options.pause_after) {
  for (const auto& [key, value] : options.metadata)
    context_.AddMetadata(key, value);
  context_.set_deadline(std::chrono::system_clock::now() + options.timeout);
  if (options.gzip) context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  stream_ = stub_.PrepareCall(&context_, path, &queue_);
  stream_->StartCall(TagOf(kOpen));
  thread_ = std::thread([this] { Run(); });
}

PendingCall::~PendingCall() {
  context_.TryCancel();
  ResumeReading();
  thread_.join();
}

bool PendingCall::Send(std::string_view message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return (open_ && !writing_) || reads_over_; });
  if (reads_over_ || write_failed_) return false;
  writing_ = true;
  const grpc::Slice slice(message.data(), message.size());
  stream_->Write(grpc::ByteBuffer(&slice, 1), TagOf(kWrite));
  changed_.wait(lock, [this] { return !writing_; });
  return !write_failed_;
}

void PendingCall::HalfClose() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return (open_ && !writing_) || reads_over_; });
  if (reads_over_ || write_failed_) return;
  writing_ = true;
  stream_->WritesDone(TagOf(kWrite));
  changed_.wait(lock, [this] { return !writing_; });
}

void PendingCall::ResumeReading() {
  const std::lock_guard lock(mutex_);
  read_limit_ = -1;
  if (paused_) ReadNext();
}

bool PendingCall::WaitForMessages(size_t count, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return result_.messages.size() >= count || done_; });
  return result_.messages.size() >= count;
}

std::optional<CallResult> PendingCall::Wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [this] { return done_; })) return std::nullopt;
  return result_;
}

void PendingCall::ReadNext() {
  paused_ = read_limit_ == 0;
  if (paused_) return;
  if (read_limit_ > 0) --read_limit_;
  stream_->Read(&incoming_, TagOf(kRead));
}

void PendingCall::OnOpened(bool ok) {
  open_ = ok;
  if (ok) return ReadNext();
  reads_over_ = true;
  stream_->Finish(&result_.status, TagOf(kFinish));
}

void PendingCall::OnRead(bool ok) {
  if (ok) {
    result_.messages.push_back(ToBytes(incoming_));
    return ReadNext();
  }
  reads_over_ = true;
  stream_->Finish(&result_.status, TagOf(kFinish));
}

void PendingCall::CollectResult() {
  result_.headers = Copy(context_.GetServerInitialMetadata());
  result_.trailers = Copy(context_.GetServerTrailingMetadata());
}

void PendingCall::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::lock_guard lock(mutex_);
    if (tag == TagOf(kOpen)) OnOpened(ok);
    if (tag == TagOf(kRead)) OnRead(ok);
    if (tag == TagOf(kFinish)) CollectResult();
    if (tag == TagOf(kFinish)) done_ = true;
    if (tag == TagOf(kWrite)) {
      writing_ = false;
      write_failed_ = !ok;
    }
    changed_.notify_all();
    if (done_ && !writing_) queue_.Shutdown();
  }
}

}  // namespace resmgr::test

// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/cri_methods.h"

#include <map>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {

namespace {

// Maps in the order of their keys, so that the same answer has the same bytes.
std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

grpc::Status Undecodable() {
  return {grpc::StatusCode::INTERNAL, "grpc: error unmarshalling request: proto: cannot parse"};
}

template <typename Request, typename Response>
MethodReply Invoke(grpc::Status (CriStore::*method)(const Request&, Response*), CriStore& store,
                   std::string_view bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {Undecodable(), {}};
  }
  Response response;
  grpc::Status status = (store.*method)(request, &response);
  if (!status.ok()) return {std::move(status), {}};
  return {grpc::Status::OK, {Serialize(response)}};
}

// Server streams.
template <typename Request, typename Response>
MethodReply Invoke(grpc::Status (CriStore::*method)(const Request&, std::vector<Response>*),
                   CriStore& store, std::string_view bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {Undecodable(), {}};
  }
  std::vector<Response> responses;
  MethodReply reply{(store.*method)(request, &responses), {}};
  for (const Response& response : responses)
    reply.messages.push_back(Serialize(response));
  return reply;
}

template <auto Method>
MethodReply Call(CriStore& store, std::string_view bytes) {
  return Invoke(Method, store, bytes);
}

// ContainerStatus.resources came after v1alpha2.
MethodReply OldContainerStatus(CriStore& store, std::string_view bytes) {
  MethodReply reply = Call<&CriStore::ContainerStatus>(store, bytes);
  for (std::string& message : reply.messages) {
    cri::ContainerStatusResponse response;
    response.ParseFromString(message);
    response.mutable_status()->clear_resources();
    message = Serialize(response);
  }
  return reply;
}

using Table = std::map<std::string_view, CriMethod>;

// clang-format off: it takes the template argument for a comparison
#define RESMGR_CRI_ENTRY(Name) \
  { #Name, Call < &CriStore::Name> }
// clang-format on

const Table& RuntimeMethods() {
  static const auto* const kTable = new Table{
      RESMGR_CRI_ENTRY(Version),
      RESMGR_CRI_ENTRY(Status),
      RESMGR_CRI_ENTRY(RuntimeConfig),
      RESMGR_CRI_ENTRY(UpdateRuntimeConfig),
      RESMGR_CRI_ENTRY(RunPodSandbox),
      RESMGR_CRI_ENTRY(StopPodSandbox),
      RESMGR_CRI_ENTRY(RemovePodSandbox),
      RESMGR_CRI_ENTRY(PodSandboxStatus),
      RESMGR_CRI_ENTRY(ListPodSandbox),
      RESMGR_CRI_ENTRY(UpdatePodSandboxResources),
      RESMGR_CRI_ENTRY(PortForward),
      RESMGR_CRI_ENTRY(CreateContainer),
      RESMGR_CRI_ENTRY(StartContainer),
      RESMGR_CRI_ENTRY(StopContainer),
      RESMGR_CRI_ENTRY(RemoveContainer),
      RESMGR_CRI_ENTRY(ListContainers),
      RESMGR_CRI_ENTRY(ContainerStatus),
      RESMGR_CRI_ENTRY(UpdateContainerResources),
      RESMGR_CRI_ENTRY(ReopenContainerLog),
      RESMGR_CRI_ENTRY(ExecSync),
      RESMGR_CRI_ENTRY(Exec),
      RESMGR_CRI_ENTRY(Attach),
      RESMGR_CRI_ENTRY(ContainerStats),
      RESMGR_CRI_ENTRY(ListContainerStats),
      RESMGR_CRI_ENTRY(PodSandboxStats),
      RESMGR_CRI_ENTRY(ListPodSandboxStats),
      RESMGR_CRI_ENTRY(ListMetricDescriptors),
      RESMGR_CRI_ENTRY(ListPodSandboxMetrics),
      RESMGR_CRI_ENTRY(StreamPodSandboxes),
      RESMGR_CRI_ENTRY(StreamContainers),
      RESMGR_CRI_ENTRY(StreamContainerStats),
      RESMGR_CRI_ENTRY(StreamPodSandboxStats),
      RESMGR_CRI_ENTRY(StreamPodSandboxMetrics),
  };
  return *kTable;
}

const Table& ImageMethods() {
  static const auto* const kTable = new Table{
      RESMGR_CRI_ENTRY(ListImages),  RESMGR_CRI_ENTRY(ImageStatus), RESMGR_CRI_ENTRY(PullImage),
      RESMGR_CRI_ENTRY(RemoveImage), RESMGR_CRI_ENTRY(ImageFsInfo), RESMGR_CRI_ENTRY(StreamImages),
  };
  return *kTable;
}
#undef RESMGR_CRI_ENTRY

CriMethod Find(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

std::string_view MethodName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

CriMethod FindCriMethod(std::string_view path) {
  const std::string_view name = MethodName(path);
  const std::string_view service = path.substr(0, path.size() - name.size());
  if (service == "/runtime.v1alpha2.RuntimeService/" && name == "ContainerStatus") {
    return &OldContainerStatus;
  }
  for (const std::string_view version : {"v1", "v1alpha2"}) {
    const std::string prefix = "/runtime." + std::string(version) + ".";
    if (service == prefix + "RuntimeService/") return Find(RuntimeMethods(), name);
    if (service == prefix + "ImageService/") return Find(ImageMethods(), name);
  }
  return nullptr;
}

}  // namespace resmgr::test

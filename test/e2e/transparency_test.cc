// SPDX-License-Identifier: Apache-2.0
// The same conversation with containerd, straight and through cri-resmgr, gives the same answers.
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node.h"
#include "test/support/cri_client/cri_client.h"

namespace resmgr::test {
namespace {

// A client's view of a runtime, so that two conversations can be compared: one line for each call
// with the status and the reply, in which everything that differs from run to run (ids, times,
// amounts) is replaced.
class Transcript {
 public:
  explicit Transcript(CriClient& client) : client_(client) {}

  // Makes the call and notes it down. The response is left as it was where the call failed.
  void Call(std::string_view method, const google::protobuf::Message& request,
            google::protobuf::Message* response);

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::string Normalize(const std::string& text);

  CriClient& client_;
  std::map<std::string, size_t> ids_;  // numbered as they appear
  std::vector<std::string> lines_;
};

void Transcript::Call(std::string_view method, const google::protobuf::Message& request,
                      google::protobuf::Message* response) {
  const grpc::Status status = client_.Unary(method, request, response);
  std::string body;
  if (status.ok()) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    options.always_print_primitive_fields = true;  // an amount of zero is an amount
    const auto printed = google::protobuf::util::MessageToJsonString(*response, &body, options);
    // Parsed and printed again, since maps come in any order.
    body = printed.ok() ? nlohmann::json::parse(body).dump() : printed.ToString();
  }
  lines_.push_back(
      Normalize(fmt::format("{}: {} {} {}", method, static_cast<int>(status.error_code()),
                            status.error_message(), body)));
}

std::string Transcript::Normalize(const std::string& text) {
  static const std::regex id("[0-9a-f]{64}");
  static const std::regex address("http://[^\"]*/");
  static const std::regex token("(HOST/)[^\"]+");
  static const std::regex placement("\"cpuset_(cpus|mems)\":\"[^\"]*\"");  // the part that we set
  static const std::regex amount("\"[0-9]+\"");  // 64-bit numbers, as JSON has them

  std::string result;
  auto rest = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), id), end; match != end; ++match) {
    const size_t number = ids_.try_emplace(match->str(), ids_.size()).first->second;
    result.append(rest, (*match)[0].first).append(fmt::format("#{}", number));
    rest = (*match)[0].second;
  }
  result.append(rest, text.cend());
  result = std::regex_replace(result, address, "HOST/");
  result = std::regex_replace(result, token, "$1TOKEN");
  result = std::regex_replace(result, placement, "\"cpuset\":\"\"");
  return std::regex_replace(result, amount, "\"N\"");
}

void AskAboutTheRuntime(Transcript* talk) {
  cri::VersionResponse version;
  talk->Call("Version", cri::VersionRequest(), &version);
  cri::StatusResponse status;
  talk->Call("Status", cri::StatusRequest(), &status);
  cri::RuntimeConfigResponse unknown_to_containerd;
  talk->Call("RuntimeConfig", cri::RuntimeConfigRequest(), &unknown_to_containerd);
  cri::ImageStatusRequest image;
  image.mutable_image()->set_image(std::string(Containerd::kBusyboxImage));
  cri::ImageStatusResponse image_status;
  talk->Call("ImageStatus", image, &image_status);
  cri::ImageFsInfoResponse file_system;
  talk->Call("ImageFsInfo", cri::ImageFsInfoRequest(), &file_system);
}

void AskAboutWhatIsThere(Transcript* talk, const std::string& pod_id,
                         const std::string& container_id) {
  cri::ListPodSandboxResponse pods;
  talk->Call("ListPodSandbox", cri::ListPodSandboxRequest(), &pods);
  cri::PodSandboxStatusRequest pod;
  pod.set_pod_sandbox_id(pod_id);
  cri::PodSandboxStatusResponse pod_status;
  talk->Call("PodSandboxStatus", pod, &pod_status);
  cri::ListContainersResponse containers;
  talk->Call("ListContainers", cri::ListContainersRequest(), &containers);
  cri::ContainerStatusRequest container;
  container.set_container_id(container_id);
  cri::ContainerStatusResponse status;
  talk->Call("ContainerStatus", container, &status);
  cri::ReopenContainerLogRequest log;
  log.set_container_id(container_id);
  cri::ReopenContainerLogResponse reopened;
  talk->Call("ReopenContainerLog", log, &reopened);
}

void RunCommands(Transcript* talk, const std::string& container_id) {
  cri::ExecSyncRequest exec;
  exec.set_container_id(container_id);
  for (const char* word : {"sh", "-c", "echo in; exit 3"})
    exec.add_cmd(word);
  cri::ExecSyncResponse output;
  talk->Call("ExecSync", exec, &output);
  exec.clear_cmd();
  exec.add_cmd("/no/such/program");
  talk->Call("ExecSync", exec, &output);
  cri::ExecRequest stream;
  stream.set_container_id(container_id);
  stream.add_cmd("sh");
  stream.set_stdout(true);
  cri::ExecResponse url;
  talk->Call("Exec", stream, &url);
}

// Every one of them is refused.
void MakeMistakes(Transcript* talk, const cri::CreateContainerRequest& good) {
  cri::CreateContainerResponse created;
  cri::CreateContainerRequest create = good;
  create.set_pod_sandbox_id("no-such-pod");
  talk->Call("CreateContainer", create, &created);
  create = good;
  create.mutable_config()->mutable_metadata()->set_name("other");
  create.mutable_config()->mutable_image()->set_image("docker.io/local/missing:1");
  talk->Call("CreateContainer", create, &created);
  create = good;
  create.mutable_config()->clear_metadata();
  talk->Call("CreateContainer", create, &created);
  talk->Call("CreateContainer", cri::CreateContainerRequest(), &created);
  cri::StartContainerRequest start;
  start.set_container_id("no-such-container");
  cri::StartContainerResponse started;
  talk->Call("StartContainer", start, &started);
  cri::UpdateContainerResourcesRequest update;
  update.set_container_id("no-such-container");
  update.mutable_linux()->set_cpu_shares(2);
  cri::UpdateContainerResourcesResponse updated;
  talk->Call("UpdateContainerResources", update, &updated);
  cri::RunPodSandboxResponse ran;
  talk->Call("RunPodSandbox", cri::RunPodSandboxRequest(), &ran);
  // Stopping and removing what is not there succeeds or fails as the runtime likes.
  cri::StopContainerRequest stop;
  stop.set_container_id("no-such-container");
  cri::StopContainerResponse stopped;
  talk->Call("StopContainer", stop, &stopped);
  cri::RemoveContainerRequest remove;
  remove.set_container_id("no-such-container");
  cri::RemoveContainerResponse removed;
  talk->Call("RemoveContainer", remove, &removed);
}

void EndContainer(Transcript* talk, const std::string& container_id) {
  cri::StopContainerRequest stop;
  stop.set_container_id(container_id);
  cri::StopContainerResponse stopped;
  talk->Call("StopContainer", stop, &stopped);
  talk->Call("StopContainer", stop, &stopped);
  cri::ContainerStatusRequest status;
  status.set_container_id(container_id);
  cri::ContainerStatusResponse exited;
  talk->Call("ContainerStatus", status, &exited);
  cri::RemoveContainerRequest remove;
  remove.set_container_id(container_id);
  cri::RemoveContainerResponse removed;
  talk->Call("RemoveContainer", remove, &removed);
}

void EndPod(Transcript* talk, const std::string& pod_id) {
  cri::StopPodSandboxRequest stop;
  stop.set_pod_sandbox_id(pod_id);
  cri::StopPodSandboxResponse stopped;
  talk->Call("StopPodSandbox", stop, &stopped);
  cri::RemovePodSandboxRequest remove;
  remove.set_pod_sandbox_id(pod_id);
  cri::RemovePodSandboxResponse removed;
  talk->Call("RemovePodSandbox", remove, &removed);
}

// A whole conversation: a kubelet's questions and actions, with a few mistakes.
std::vector<std::string> Converse(const Node& node, CriClient& client) {
  Transcript talk(client);
  AskAboutTheRuntime(&talk);

  const Workload workload = Burstable("app", MilliCpu{250});
  cri::RunPodSandboxRequest run;
  *run.mutable_config() = node.PodConfig(workload);
  cri::RunPodSandboxResponse pod;
  talk.Call("RunPodSandbox", run, &pod);

  cri::CreateContainerRequest create;
  create.set_pod_sandbox_id(pod.pod_sandbox_id());
  *create.mutable_config() = Node::ContainerConfig(workload);
  *create.mutable_sandbox_config() = run.config();
  cri::CreateContainerResponse container;
  talk.Call("CreateContainer", create, &container);
  cri::CreateContainerResponse name_taken;
  talk.Call("CreateContainer", create, &name_taken);
  MakeMistakes(&talk, create);

  cri::StartContainerRequest start;
  start.set_container_id(container.container_id());
  cri::StartContainerResponse started;
  talk.Call("StartContainer", start, &started);
  talk.Call("StartContainer", start, &started);
  AskAboutWhatIsThere(&talk, pod.pod_sandbox_id(), container.container_id());
  RunCommands(&talk, container.container_id());
  cri::UpdateContainerResourcesRequest update;
  update.set_container_id(container.container_id());
  update.mutable_linux()->set_cpu_shares(512);
  cri::UpdateContainerResourcesResponse updated;
  talk.Call("UpdateContainerResources", update, &updated);

  EndContainer(&talk, container.container_id());
  EndPod(&talk, pod.pod_sandbox_id());
  return talk.lines();
}

// Line by line, so that a difference is easy to see.
void ExpectSame(const std::vector<std::string>& actual, const std::vector<std::string>& expected) {
  constexpr size_t kWholeConversation = 30;
  EXPECT_GT(expected.size(), kWholeConversation);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(actual[i], expected[i]);
}

class TransparencyTest : public ::testing::TestWithParam<ApiVersion> {
 protected:
  std::unique_ptr<Node> Start(bool relayed) {
    auto node = Node::OnContainerd({.version = GetParam(), .relayed = relayed});
    EXPECT_TRUE(node.ok()) << Describe(node.status());
    return node.ok() ? *std::move(node) : nullptr;
  }
};

// The control experiment: whatever differs from run to run is not compared.
TEST_P(TransparencyTest, TheRuntimeAnswersTwiceAlike) {
  const auto node = Start(/*relayed=*/false);
  ASSERT_NE(node, nullptr);
  const std::vector<std::string> first = Converse(*node, node->runtime());
  ExpectSame(Converse(*node, node->runtime()), first);
}

TEST_P(TransparencyTest, TheRelayAnswersAsTheRuntimeDoes) {
  const auto node = Start(/*relayed=*/true);
  ASSERT_NE(node, nullptr);
  const std::vector<std::string> direct = Converse(*node, node->runtime());
  ExpectSame(Converse(*node, node->client()), direct);
}

std::string NameOfVersion(const ::testing::TestParamInfo<ApiVersion>& version) {
  return version.param == ApiVersion::kV1 ? "V1" : "V1Alpha2";
}

INSTANTIATE_TEST_SUITE_P(Containerd, TransparencyTest, ::testing::Values(ApiVersion::kV1),
                         NameOfVersion);
INSTANTIATE_TEST_SUITE_P(Long, TransparencyTest, ::testing::Values(ApiVersion::kV1Alpha2),
                         NameOfVersion);

}  // namespace
}  // namespace resmgr::test

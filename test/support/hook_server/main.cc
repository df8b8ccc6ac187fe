// SPDX-License-Identifier: Apache-2.0
// resmgr-hook-server: a Koordinator hook server on gRPC's own C++ library, in a process of its own,
// which tests kill, stop and start. It repeats what it is asked, as koordlet does, with changes:
//
//   -socket PATH         where it serves
//   -calls FILE          appends a line for each call: the hook's name, a space, the request in hex
//   -sparse              answers with the changes alone
//   -env NAME=VALUE, -annotation KEY=VALUE, -unified FILE=VALUE
//   -shares N, -quota N, -cpus LIST ("" clears)
//   -pod-shares N        of a pod sandbox, with a lifted quota and a memory limit of -1
//   -hang HOOK           never answers this hook
//   -refuse HOOK         answers it with an error
//
// Ends on SIGTERM.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/parse.h"
#include "test/support/byte_buffer.h"
#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::test {
namespace {

namespace api = ::runtime::v1alpha1;

constexpr int kUsage = 1;
constexpr int kEnvironment = 2;

struct Behaviour {
  std::string socket;
  std::string calls;
  bool sparse = false;
  std::map<std::string, std::string> envs;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> unified;
  std::optional<int64_t> shares;
  std::optional<int64_t> quota;
  std::optional<int64_t> pod_shares;
  std::optional<std::string> cpus;
  std::set<std::string> hanging;
  std::set<std::string> refusing;
};

void AddPair(std::string_view text, std::map<std::string, std::string>& pairs) {
  const size_t end = text.find('=');
  pairs[std::string(text.substr(0, end))] =
      end == std::string_view::npos ? "" : std::string(text.substr(end + 1));
}

std::optional<Behaviour> Parse(int argc, char** argv) {
  Behaviour behaviour;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "-sparse") {
      behaviour.sparse = true;
      continue;
    }
    if (++i == argc) return std::nullopt;
    const std::string value = argv[i];
    if (flag == "-socket") behaviour.socket = value;
    if (flag == "-calls") behaviour.calls = value;
    if (flag == "-env") AddPair(value, behaviour.envs);
    if (flag == "-annotation") AddPair(value, behaviour.annotations);
    if (flag == "-unified") AddPair(value, behaviour.unified);
    if (flag == "-shares") behaviour.shares = ParseInt(value);
    if (flag == "-quota") behaviour.quota = ParseInt(value);
    if (flag == "-pod-shares") behaviour.pod_shares = ParseInt(value);
    if (flag == "-cpus") behaviour.cpus = value;
    if (flag == "-hang") behaviour.hanging.insert(value);
    if (flag == "-refuse") behaviour.refusing.insert(value);
  }
  if (behaviour.socket.empty()) return std::nullopt;
  return behaviour;
}

class Server final : public CallHandler {
 public:
  explicit Server(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
    if (!behaviour_.calls.empty()) calls_.open(behaviour_.calls, std::ios::app);
  }

  void OnCall(const ServerCallPtr&) override {}
  void OnMessage(const ServerCallPtr& call, const grpc::ByteBuffer& message) override {
    requests_[call.get()] = ToBytes(message);
  }
  void OnHalfClosed(const ServerCallPtr& call) override {
    const std::string& request = requests_[call.get()];
    const std::string hook = HookOf(call->path());
    Note(hook, request);
    if (behaviour_.hanging.contains(hook)) return;
    if (behaviour_.refusing.contains(hook)) {
      return call->Finish(grpc::Status(grpc::StatusCode::INTERNAL, "told to refuse"));
    }
    const bool pods = hook.ends_with("PodSandbox");
    call->WriteLast(ToBuffer(pods ? AnswerPod(request) : AnswerContainer(request)), grpc::Status());
  }
  void OnEnd(const ServerCallPtr& call, bool) override { requests_.erase(call.get()); }

 private:
  // "/runtime.v1alpha1.RuntimeHookService/PreRunPodSandboxHook" is of PreRunPodSandbox.
  static std::string HookOf(std::string_view path) {
    path.remove_prefix(path.rfind('/') + 1);
    if (path.ends_with("Hook")) path.remove_suffix(4);
    return std::string(path);
  }

  void Note(const std::string& hook, const std::string& request) {
    if (!calls_.is_open()) return;
    calls_ << hook << ' ' << std::hex << std::setfill('0');
    for (const char byte : request)
      calls_ << std::setw(2) << static_cast<unsigned>(static_cast<unsigned char>(byte));
    calls_ << std::endl;
  }

  std::string AnswerPod(const std::string& bytes) const {
    api::PodSandboxHookRequest request;
    request.ParseFromString(bytes);
    api::PodSandboxHookResponse answer;
    if (!behaviour_.sparse) {
      *answer.mutable_labels() = request.labels();
      *answer.mutable_annotations() = request.annotations();
      answer.set_cgroup_parent(request.cgroup_parent());
      *answer.mutable_resources() = request.resources();
    }
    for (const auto& [key, value] : behaviour_.annotations)
      (*answer.mutable_annotations())[key] = value;
    if (behaviour_.pod_shares) {
      // A limit of -1, as koordlet sends for a pod without a limit of batch memory.
      answer.mutable_resources()->set_cpu_shares(*behaviour_.pod_shares);
      answer.mutable_resources()->set_cpu_quota(-1);
      answer.mutable_resources()->set_memory_limit_in_bytes(-1);
    }
    return answer.SerializeAsString();
  }

  std::string AnswerContainer(const std::string& bytes) const {
    api::ContainerResourceHookRequest request;
    request.ParseFromString(bytes);
    api::ContainerResourceHookResponse answer;
    if (!behaviour_.sparse) {
      *answer.mutable_container_annotations() = request.container_annotations();
      *answer.mutable_container_resources() = request.container_resources();
      answer.set_pod_cgroup_parent(request.pod_cgroup_parent());
      *answer.mutable_container_envs() = request.container_envs();
    }
    for (const auto& [key, value] : behaviour_.annotations)
      (*answer.mutable_container_annotations())[key] = value;
    for (const auto& [key, value] : behaviour_.envs)
      (*answer.mutable_container_envs())[key] = value;
    api::LinuxContainerResources& resources = *answer.mutable_container_resources();
    for (const auto& [file, value] : behaviour_.unified)
      (*resources.mutable_unified())[file] = value;
    if (behaviour_.shares) resources.set_cpu_shares(*behaviour_.shares);
    if (behaviour_.quota) resources.set_cpu_quota(*behaviour_.quota);
    if (behaviour_.cpus) resources.set_cpuset_cpus(*behaviour_.cpus);
    return answer.SerializeAsString();
  }

  const Behaviour behaviour_;
  std::ofstream calls_;
  std::map<ServerCall*, std::string> requests_;
};

int Main(int argc, char** argv) {
  const auto behaviour = Parse(argc, argv);
  if (!behaviour) {
    std::fprintf(stderr, "usage: %s -socket PATH [OPTION VALUE]...\n", argv[0]);
    return kUsage;
  }
  // Blocked before the server's threads exist, so that none of them takes the signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Server handler(*behaviour);
  const auto server = GenericServer::Start(behaviour->socket, handler);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", Describe(server.status()).c_str());
    return kEnvironment;
  }
  std::printf("serving on %s\n", behaviour->socket.c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}

}  // namespace
}  // namespace resmgr::test

int main(int argc, char** argv) {
  return resmgr::test::Main(argc, argv);
}

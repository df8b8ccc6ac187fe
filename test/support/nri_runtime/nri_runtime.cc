// SPDX-License-Identifier: Apache-2.0
#include "test/support/nri_runtime/nri_runtime.h"

#include <utility>

#include "pkg/nri/protocol.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/multiplexer.h"
#include "pkg/ttrpc/server.h"
#include "test/support/wait.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;

constexpr int32_t kValidation = 1 << (nri_api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT - 1);

}  // namespace

// One connection, from the registration to the loss.
class NriRuntime::Plugin {
 public:
  Plugin(NriRuntime& runtime, UniqueFd socket)
      : runtime_(runtime),
        trunk_(runtime.loop_, std::move(socket), [this](const Status& why) { Lose(why); }),
        plugin_(runtime.loop_, trunk_, nri::kPluginConnection, budget_),
        server_(runtime.loop_, trunk_, nri::kRuntimeConnection, budget_, nri::kRuntimeService,
                Methods()) {}

  bool synchronized() const { return synchronized_; }
  bool lost() const { return lost_; }
  bool validates() const { return (events_ & kValidation) != 0; }

  void Lose(const Status& why) {
    lost_ = true;
    plugin_.Lose(why);
  }
  void Call(std::string_view method, const std::string& request, ttrpc::Client::Done done) {
    plugin_.Call(nri::kPluginService, method, request, runtime_.options_.request_timeout,
                 std::move(done));
  }

 private:
  ttrpc::Server::Methods Methods() {
    using Reply = ttrpc::Server::Reply;
    return {{"RegisterPlugin",
             [this](const std::string&, std::chrono::nanoseconds, const Reply& reply) {
               reply(std::string());
               Configure();
             }},
            {"UpdateContainers",
             [this](const std::string& payload, std::chrono::nanoseconds, const Reply& reply) {
               nri_api::UpdateContainersRequest request;
               request.ParseFromString(payload);
               runtime_.updates_.insert(runtime_.updates_.end(), request.update().begin(),
                                        request.update().end());
               reply(std::string());
             }}};
  }

  void Configure() {
    nri_api::ConfigureRequest request;
    request.set_runtime_name(runtime_.options_.name);
    request.set_runtime_version(runtime_.options_.version);
    request.set_nri_version(runtime_.options_.nri_version);
    Call("Configure", request.SerializeAsString(), [this](const StatusOr<std::string>& answer) {
      nri_api::ConfigureResponse response;
      if (!answer.ok() || !response.ParseFromString(*answer)) return Lose(Internal("no answer"));
      events_ = runtime_.events_ = response.events();
      Synchronize();
    });
  }
  void Synchronize() {
    Call("Synchronize", runtime_.inventory.SerializeAsString(),
         [this](const StatusOr<std::string>& answer) {
           if (!answer.ok()) return Lose(answer.status());
           synchronized_ = true;
           ++runtime_.synchronized_;
         });
  }

  NriRuntime& runtime_;
  bool synchronized_ = false;
  bool lost_ = false;
  int32_t events_ = 0;
  ttrpc::MemoryBudget budget_;
  ttrpc::Multiplexer trunk_;
  ttrpc::Client plugin_;
  ttrpc::Server server_;
};

StatusOr<std::unique_ptr<NriRuntime>> NriRuntime::Start(const std::string& socket,
                                                        Options options) {
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(socket, 0600));
  return std::unique_ptr<NriRuntime>(new NriRuntime(std::move(listener), std::move(options)));
}

NriRuntime::NriRuntime(ListeningSocket listener, Options options)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      accepting_(loop_.Watch(listener_.fd(), EventLoop::kReadable, [this](int) { Accept(); })) {}

NriRuntime::~NriRuntime() = default;

void NriRuntime::Accept() {
  StatusOr<std::optional<UniqueFd>> accepted = listener_.Accept();
  if (!accepted.ok() || !accepted->has_value()) return;
  ++connections_;
  plugins_.push_back(std::make_unique<Plugin>(*this, **std::move(accepted)));
}

bool NriRuntime::Await(const std::function<bool()>& condition, milliseconds patience) {
  return RunUntil(loop_, condition, patience);
}

bool NriRuntime::AwaitSynchronized(int plugins) {
  return Await([&] { return synchronized_ >= plugins; });
}

StatusOr<std::string> NriRuntime::Ask(Plugin& plugin, std::string_view method,
                                      const std::string& request) {
  if (plugin.lost()) return Unavailable("ttrpc: closed");
  std::optional<StatusOr<std::string>> answer;
  plugin.Call(method, request,
              [&answer](StatusOr<std::string> told) { answer.emplace(std::move(told)); });
  (void)Await([&] { return answer.has_value(); });
  const bool fatal = answer->status().code() == StatusCode::kUnavailable ||
                     answer->status().code() == StatusCode::kDeadlineExceeded;
  if (fatal) plugin.Lose(answer->status());
  return *std::move(answer);
}

Status NriRuntime::Validate(const nri_api::CreateContainerRequest& request) {
  nri_api::ValidateContainerAdjustmentRequest validation;
  *validation.mutable_pod() = request.pod();
  *validation.mutable_container() = request.container();
  for (const std::unique_ptr<Plugin>& plugin : plugins_) {
    if (!plugin->validates()) continue;
    const auto answer = Ask(*plugin, "ValidateContainerAdjustment", validation.SerializeAsString());
    if (!answer.ok()) return Internal("validator plugin failed: {}", Message(answer.status()));
  }
  return OkStatus();
}

StatusOr<nri_api::CreateContainerResponse> NriRuntime::CreateContainer(
    const nri_api::CreateContainerRequest& request) {
  nri_api::CreateContainerResponse merged;
  Status status;
  for (const std::unique_ptr<Plugin>& plugin : plugins_) {
    if (!plugin->synchronized() || !status.ok()) continue;
    const auto answer = Ask(*plugin, "CreateContainer", request.SerializeAsString());
    if (plugin->lost()) continue;
    if (!answer.ok()) {
      status = Internal("{}", Message(answer.status()));
    } else if (!merged.MergeFromString(*answer)) {
      status = Internal("the plugin's answer is no protobuf");
    }
  }
  if (status.ok()) status = Validate(request);
  RemoveLost();
  if (!status.ok()) return status;
  return merged;
}

void NriRuntime::Tell(nri_api::Event event, const nri_api::PodSandbox& pod,
                      const nri_api::Container& container) {
  nri_api::StateChangeEvent told;
  told.set_event(event);
  *told.mutable_pod() = pod;
  *told.mutable_container() = container;
  for (const std::unique_ptr<Plugin>& plugin : plugins_)
    (void)Ask(*plugin, "StateChange", told.SerializeAsString());
  RemoveLost();
}

void NriRuntime::RemoveLost() {
  std::erase_if(plugins_, [](const std::unique_ptr<Plugin>& plugin) { return plugin->lost(); });
}

nri_api::CreateContainerRequest NriCreation(const std::string& name, int cpus) {
  constexpr int64_t kPeriod = 100'000;
  constexpr uint64_t kSharesOfCpu = 1024;
  nri_api::CreateContainerRequest request;
  nri_api::PodSandbox& pod = *request.mutable_pod();
  pod.set_id(name + "-pod");
  pod.set_name(name);
  pod.set_namespace_("default");
  pod.set_uid("uid-" + name);
  pod.mutable_linux()->set_cgroup_parent(
      std::string(cpus > 0 ? "/kubepods/poduid-" : "/kubepods/besteffort/poduid-") + name);
  nri_api::Container& container = *request.mutable_container();
  container.set_id(name + "-id");
  container.set_pod_sandbox_id(pod.id());
  container.set_name(name);
  nri_api::LinuxCPU& cpu = *container.mutable_linux()->mutable_resources()->mutable_cpu();
  cpu.mutable_shares()->set_value(cpus > 0 ? static_cast<uint64_t>(cpus) * kSharesOfCpu : 2);
  if (cpus > 0) {
    cpu.mutable_quota()->set_value(cpus * kPeriod);
    cpu.mutable_period()->set_value(kPeriod);
  }
  return request;
}

}  // namespace resmgr::test

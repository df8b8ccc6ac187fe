// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/interceptors.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/recycled.h"
#include "pkg/cri/hint_finder.h"

namespace resmgr {

namespace {

// gRPC's NOT_FOUND: what was to be stopped or removed does not exist, which kubelet takes for
// success.
constexpr int kGrpcNotFound = 5;

// Statuses of calls that may go on all the same: CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE.
bool MayStillTakeEffect(const GrpcStatus& status) {
  return status.code == 1 || status.code == 4 || status.code == 14;
}

// What all of them share.
class CountedInterception : public Interception {
 public:
  explicit CountedInterception(ResourceInterceptor::Brain& brain)
      : manager_(brain.manager), brain_(brain) {
    ++brain_.interceptions;
  }
  ~CountedInterception() override { --brain_.interceptions; }

 protected:
  Status Connect() const { return brain_.connect(); }

  ResourceManager& manager_;
  ResourceInterceptor::Brain& brain_;
};

// What those before a call share: waiting for the brain to know the runtime's state, and being
// destroyed meanwhile.
class WaitingInterception : public CountedInterception {
 public:
  using CountedInterception::CountedInterception;

  void OnRequest(std::string_view message, Asker& asker) final {
    if (!Decode(message)) {
      asker.OnVerdict({});
      return;
    }
    asker_ = &asker;
    Enter();
  }

 protected:
  // False: the request is not what its path says.
  virtual bool Decode(std::string_view message) = 0;
  // Ends, at once or later, with Answer.
  virtual void Admit() = 0;

  // Admits when the brain knows the runtime's state.
  void Enter() {
    if (const Status connected = Connect(); !connected.ok()) {
      Answer({.refusal = connected, .suffix = {}});
      return;
    }
    if (manager_.ready()) {
      Admit();
      return;
    }
    manager_.WhenReady([this, alive = alive()](const Status& ready) {
      if (alive.expired()) return;
      if (ready.ok()) {
        Admit();
      } else {
        Answer({.refusal = ready, .suffix = {}});
      }
    });
  }

  // Has everything listed, and then it is decided once more.
  void AdmitAfterList() {
    listed_ = true;
    manager_.Refresh([this, alive = alive()](const Status&) {
      if (!alive.expired()) Enter();
    });
  }
  bool listed() const { return listed_; }
  // What is decided before and after that.
  ResourceManager::Refusal refusal() const {
    using enum ResourceManager::Refusal;
    return listed_ ? kFinal : kTentative;
  }
  // Others may have removed what is in the way, and nobody told.
  bool ShouldList(const Status& refusal) const {
    return !listed_ && refusal.code() == StatusCode::kResourceExhausted;
  }

  // May destroy this object: nothing follows it.
  void Answer(const Verdict& verdict) { asker_->OnVerdict(verdict); }

  // Expires when this object is destroyed.
  std::weak_ptr<void> alive() {
    if (alive_ == nullptr) alive_ = std::make_shared<char>();
    return alive_;
  }

 private:
  Asker* asker_ = nullptr;
  bool listed_ = false;
  std::shared_ptr<void> alive_;  // made when it is asked for
};

class CreateContainerInterception final : public WaitingInterception,
                                          public Recycled<CreateContainerInterception> {
 public:
  using WaitingInterception::WaitingInterception;
  ~CreateContainerInterception() override {
    if (!admitted_) return;
    manager_.CreateFailed(*admitted_);
    // Whether the container exists now, only the runtime knows.
    manager_.Resync();
  }

  bool ReadsReply() const override { return true; }
  void OnReply(const GrpcStatus& status, std::string_view message) override {
    if (!admitted_) return;
    const ContainerKey key = *std::exchange(admitted_, std::nullopt);
    const auto id = DecodeId(message);
    if (status.ok() && id.ok() && !id->empty()) {
      manager_.CreateSucceeded(key, ContainerId(*id));
    } else {
      manager_.CreateFailed(key);
      // It may exist all the same.
      if (status.ok() || MayStillTakeEffect(status)) manager_.Resync();
    }
  }

 private:
  bool Decode(std::string_view message) override {
    return DecodeCreateContainer(message, message_).ok();
  }

  void Admit() override {
    if (!manager_.policy().WantsHints() || hinted_ || !AskForHints()) Place();
  }

  // False: there is nothing to be waited for.
  bool AskForHints() {
    hinted_ = true;
    std::vector<HintPath> paths = HintPaths(message_.config);
    if (paths.empty()) return false;
    question_ = brain_.hints.Ask(std::move(paths), [this](HintFinder::Hints hints) {
      message_.request.hints = std::move(hints);
      // The connection may be another one by now.
      Enter();
    });
    return question_ != nullptr;
  }

  void Place() {
    CreateRequest& request = message_.request;
    if (manager_.snapshot().FindPod(request.pod_id) == nullptr &&
        !message_.sandbox_config.empty()) {
      if (auto pod = DecodeSandboxConfig(message_.sandbox_config); pod.ok()) {
        pod->id = request.pod_id;
        request.pod = *std::move(pod);
      }
    }
    auto admission = manager_.AdmitCreate(std::move(request), refusal());
    if (!admission.ok()) {
      if (ShouldList(admission.status())) return AdmitAfterList();
      Answer({.refusal = admission.status(), .suffix = {}});
      return;
    }
    admitted_ = admission->key;
    Answer({.refusal = OkStatus(), .suffix = brain_.creation_suffix.For(admission->adjustment)});
  }

  CreateMessage message_;
  std::optional<ContainerKey> admitted_;
  bool hinted_ = false;  // hints were asked for
  std::unique_ptr<HintFinder::Question> question_;
};

class UpdateContainerInterception final : public WaitingInterception {
 public:
  using WaitingInterception::WaitingInterception;
  ~UpdateContainerInterception() override {
    if (admission_) manager_.UpdateFailed(*admission_);
  }

  void OnReply(const GrpcStatus& status, std::string_view) override {
    if (!admission_) return;
    const Admission admission = *std::exchange(admission_, std::nullopt);
    if (status.ok()) {
      manager_.UpdateSucceeded(admission);
    } else {
      manager_.UpdateFailed(admission);
    }
  }

 private:
  bool Decode(std::string_view message) override {
    auto decoded = DecodeUpdateContainerResources(message);
    if (!decoded.ok() || !decoded->has_linux) return false;
    request_ = *std::move(decoded);
    return true;
  }

  void Admit() override {
    // Created while nobody looked, by its whole id or by a beginning of it.
    if (!listed() && !manager_.Knows(request_.id)) return AdmitAfterList();
    auto admission = manager_.AdmitUpdate(request_.id, request_.resources, refusal());
    if (!admission.ok()) {
      if (ShouldList(admission.status())) return AdmitAfterList();
      Answer({.refusal = admission.status(), .suffix = {}});
      return;
    }
    admission_ = *std::move(admission);
    brain_.update_suffix.clear();
    AppendUpdateAdjustment(admission_->adjustment, brain_.update_suffix);
    Answer({.refusal = OkStatus(), .suffix = brain_.update_suffix});
  }

  UpdateMessage request_;
  std::optional<Admission> admission_;
};

class StartContainerInterception final : public WaitingInterception {
 public:
  using WaitingInterception::WaitingInterception;
  ~StartContainerInterception() override {
    if (admitted_) manager_.StartUnclear(id_);
  }

  void OnReply(const GrpcStatus& status, std::string_view) override {
    if (!std::exchange(admitted_, false)) return;
    if (status.ok()) {
      manager_.StartSucceeded(id_);
    } else if (MayStillTakeEffect(status)) {
      manager_.StartUnclear(id_);
    } else {
      manager_.StartFailed(id_);
    }
  }

 private:
  bool Decode(std::string_view message) override {
    auto id = DecodeId(message);
    if (!id.ok()) return false;
    id_ = ContainerId(*id);
    return true;
  }

  void Admit() override {
    const std::weak_ptr<void> alive = this->alive();
    auto wait = manager_.AdmitStart(id_, [this](const Status& status) {
      admitted_ = status.ok();
      Answer({.refusal = status, .suffix = {}});
    });
    if (!alive.expired()) wait_ = std::move(wait);
  }

  ContainerId id_;
  bool admitted_ = false;
  std::unique_ptr<ResourceManager::StartWait> wait_;
};

class RunPodSandboxInterception final : public CountedInterception {
 public:
  using CountedInterception::CountedInterception;

  void OnRequest(std::string_view message, Asker& asker) override {
    if (auto decoded = DecodeRunPodSandbox(message); decoded.ok()) pod_ = std::move(decoded->pod);
    asker.OnVerdict({});
  }

  bool ReadsReply() const override { return true; }
  void OnReply(const GrpcStatus& status, std::string_view message) override {
    const auto id = DecodeId(message);
    if (!pod_ || !status.ok() || !id.ok() || id->empty()) return;
    pod_->id = PodSandboxId(*id);
    manager_.PodCreated(*std::move(pod_));
  }

 private:
  std::optional<Pod> pod_;
};

class UpdatePodInterception final : public CountedInterception {
 public:
  using CountedInterception::CountedInterception;

  void OnRequest(std::string_view message, Asker& asker) override {
    if (auto decoded = DecodeUpdatePodSandboxResources(message); decoded.ok()) {
      update_ = *std::move(decoded);
    }
    asker.OnVerdict({});
  }

  void OnReply(const GrpcStatus& status, std::string_view) override {
    if (!status.ok()) return;
    manager_.PodResourcesChanged(update_.id, update_.overhead, update_.resources);
  }

 private:
  UpdatePodMessage update_;
};

// A kubelet asks when it sees that something changed: this is how we learn of a container that
// ended by itself, as init containers do.
class ContainerStatusInterception final : public CountedInterception {
 public:
  using CountedInterception::CountedInterception;

  void OnRequest(std::string_view message, Asker& asker) override {
    if (const auto id = DecodeId(message); id.ok()) id_ = ContainerId(*id);
    asker.OnVerdict({});
  }
  bool ReadsReply() const override { return true; }

  void OnReply(const GrpcStatus& status, std::string_view message) override {
    if (status.code == kGrpcNotFound && manager_.Knows(id_)) manager_.ContainerRemoved(id_);
    if (!status.ok()) return;
    const auto exited = DecodeExited(message);
    if (exited.ok() && exited->has_value()) manager_.ContainerExited(**exited);
  }

 private:
  ContainerId id_;
};

// A request of an id whose success the brain is told.
template <typename RuntimeId, void (ResourceManager::*kRelease)(const RuntimeId&)>
class ReleaseInterception final : public CountedInterception,
                                  public Recycled<ReleaseInterception<RuntimeId, kRelease>> {
 public:
  using CountedInterception::CountedInterception;

  void OnRequest(std::string_view message, Asker& asker) override {
    if (const auto id = DecodeId(message); id.ok()) id_ = RuntimeId(*id);
    asker.OnVerdict({});
  }

  void OnReply(const GrpcStatus& status, std::string_view) override {
    if (!id_.empty() && (status.ok() || status.code == kGrpcNotFound)) (manager_.*kRelease)(id_);
  }

 private:
  RuntimeId id_;
};
template <auto kRelease>
using ContainerRelease = ReleaseInterception<ContainerId, kRelease>;
template <auto kRelease>
using PodRelease = ReleaseInterception<PodSandboxId, kRelease>;

}  // namespace

std::unique_ptr<Interception> ResourceInterceptor::Begin(const Method& method) {
  switch (method.operation) {
    case Operation::kCreateContainer:
      return std::make_unique<CreateContainerInterception>(brain_);
    case Operation::kStartContainer:
      return std::make_unique<StartContainerInterception>(brain_);
    case Operation::kUpdateContainerResources:
      return std::make_unique<UpdateContainerInterception>(brain_);
    case Operation::kRunPodSandbox:
      return std::make_unique<RunPodSandboxInterception>(brain_);
    case Operation::kContainerStatus:
      return std::make_unique<ContainerStatusInterception>(brain_);
    case Operation::kStopContainer:
      return std::make_unique<ContainerRelease<&ResourceManager::ContainerStopped>>(brain_);
    case Operation::kRemoveContainer:
      return std::make_unique<ContainerRelease<&ResourceManager::ContainerRemoved>>(brain_);
    case Operation::kStopPodSandbox:
      return std::make_unique<PodRelease<&ResourceManager::PodStopped>>(brain_);
    case Operation::kRemovePodSandbox:
      return std::make_unique<PodRelease<&ResourceManager::PodRemoved>>(brain_);
    case Operation::kUpdatePodSandboxResources:
      return std::make_unique<UpdatePodInterception>(brain_);
    case Operation::kGetContainerEvents:
    case Operation::kOther:
      return nullptr;
  }
  return nullptr;
}

}  // namespace resmgr

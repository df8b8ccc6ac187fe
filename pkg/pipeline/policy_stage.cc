// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/policy_stage.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/claims/claim_names.h"
#include "pkg/log/log.h"
#include "pkg/log/not_logged.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

namespace {

// Users can make any number of containers that show claims.
constexpr uint32_t kClaimWarnings = 10;
constexpr std::chrono::minutes kClaimWarningPeriod{1};

// If the object is missing, its stop or removal has succeeded, also for the kubelet.
bool IsFound(const Outcome& outcome) {
  return outcome.ok() || outcome.gone();
}

const Adjustment& SentBy(const Outcome& outcome) {
  static const Adjustment kNothing;
  return outcome.sent == nullptr ? kNothing : *outcome.sent;
}

// The claims that a container shows.
struct ShownClaims {
  std::set<std::string> uids{};  // claims that the container carries, or for which it is refused
  std::vector<std::string> ignored{};  // devices and variables that stand for no claim
};

// Adds the claims of CDI devices. A claim that is not held is added, too, so that the container is
// refused. Exception: if no claim is held at all, a device of the compatible kind is ignored, since
// it belongs to another driver or to a forgotten claim.
void AddClaimsInDevices(const ContainerDetails& details, const HeldClaims& held,
                        ShownClaims& shown) {
  for (const std::string& device : details.cdi_devices) {
    const auto uid = UidOfClaimDevice(device);
    if (!uid) continue;
    if (held.empty() && device.starts_with(kCompatibleClaimKind)) {
      shown.ignored.push_back(device);
    } else {
      shown.uids.emplace(*uid);
    }
  }
}

// Adds held claims that variables name, unless a device names them already. An error: a claim is
// for other pods. `pod` may be nullptr.
Status AddClaimsInVariables(const ContainerDetails& details, const HeldClaims& held, const Pod* pod,
                            ShownClaims& shown) {
  for (const EnvironmentVariable& variable : details.environment) {
    const auto found = UidOfClaimVariable(variable.name);
    if (!found) continue;
    const std::string uid(*found);
    if (shown.uids.contains(uid)) continue;
    const HeldClaim* const claim = held.Find(uid);
    if (claim == nullptr) {
      shown.ignored.emplace_back(variable.name);
      continue;
    }
    if (pod != nullptr && !claim->claim.IsFor(pod->uid.value())) {
      return NotFound(
          "{} was prepared for other pods than {}/{}: a pod has to name it among its "
          "resourceClaims; one that does, and came later than these, has to be made anew when they "
          "have ended",
          claim->Title(), pod->namespace_name, pod->name);
    }
    shown.uids.insert(uid);
  }
  return OkStatus();
}

// The common part of calls with a decision: a call waits until the resource manager knows the
// runtime's state, and may be destroyed meanwhile.
class DecidedCall : public StageCall {
 public:
  explicit DecidedCall(PolicyStage& stage)
      : StageCall(stage), manager_(stage.manager()), policy_stage_(stage) {}

  void Before(Request& request, const Adjustment&) final {
    request_ = &request;
    Enter();
  }

 protected:
  // Answers the call, at once or later.
  virtual void Decide(Request& request) = 0;

  // Decides when the resource manager knows the runtime's state.
  void Enter() {
    if (Status connected = policy_stage_.Connect(); !connected.ok()) {
      Refuse(std::move(connected));
      return;
    }
    if (manager_.synchronizer().ready()) {
      Decide(*request_);
      return;
    }
    manager_.synchronizer().WhenReady(lifetime_.Guard([this](const Status& ready) {
      if (ready.ok()) {
        Decide(*request_);
      } else {
        Refuse(ready);
      }
    }));
  }

  // Lists the runtime's state, and then decides once more.
  void DecideAfterList() {
    listed_ = true;
    manager_.synchronizer().Refresh(lifetime_.Guard([this](const Status&) { Enter(); }));
  }
  bool MayListMore() const { return !listed_ && manager_.synchronizer().RefreshTellsNews(); }
  // Tentative if a list of the runtime's state may still change the refusal.
  ResourceManager::Refusal refusal() const {
    return MayListMore() ? ResourceManager::Refusal::kTentative : ResourceManager::Refusal::kFinal;
  }
  // Whether a list may help: another client may have removed the containers that have the missing
  // CPUs.
  bool ShouldList(const Status& refusal) const {
    return MayListMore() && refusal.code() == StatusCode::kResourceExhausted;
  }

  std::weak_ptr<void> alive() const { return lifetime_.token(); }

  ResourceManager& manager_;
  PolicyStage& policy_stage_;

 private:
  Request* request_ = nullptr;
  bool listed_ = false;
  Lifetime lifetime_;
};

class CreateContainerCall final : public DecidedCall {
 public:
  using DecidedCall::DecidedCall;

  void BeforeSent(const Adjustment& sent) override {
    if (admitted_) manager_.set_later().CreationSent(*admitted_, sent);
  }
  void Refused(const Status& why) override { refusal_of_other_ = why; }
  void RollBack() override {
    if (admitted_) manager_.CreateFailed(*admitted_, refusal_of_other_);
  }
  void After(Request&, const Outcome& outcome) override {
    if (!admitted_) return;
    if (outcome.ok() && !outcome.id.empty()) {
      manager_.CreateSucceeded(*admitted_, ContainerId(outcome.id), SentBy(outcome));
      return;
    }
    // The container may exist despite the missing id or the error; only the runtime knows.
    if (outcome.ok() || outcome.unclear()) return manager_.CreateUnclear(*admitted_);
    manager_.RefusedByRuntime(*admitted_, outcome.message);
    manager_.CreateFailed(*admitted_);
  }

 private:
  void Decide(Request& request) override {
    if (hinted_ || !AskForHints(request)) Place(request);
  }

  // False: there is no answer to wait for.
  bool AskForHints(Request& request) {
    hinted_ = true;
    const Policy& policy = manager_.policy();
    if (policy.WantsHints()) AskForPaths(request);
    if (policy.WantsPodResources() && policy_stage_.devices() != nullptr) AskForDevices(request);
    for (const HintSource* const source : {&paths_, &devices_})
      waiting_ += source->question == nullptr ? 0 : 1;
    return waiting_ > 0;
  }
  void AskForPaths(Request& request) {
    std::vector<HintPath> paths = HintPaths(request.Details({Detail::kMounts, Detail::kDevices}));
    if (paths.empty()) return;
    paths_.question = policy_stage_.hints().Ask(std::move(paths), AnswerOf(paths_, request));
  }
  void AskForDevices(Request& request) {
    const auto& create = std::get<CreateRequest>(request.body);
    std::optional<Pod> unknown;
    const Pod* pod = manager_.snapshot().FindPod(create.pod_id);
    if (pod == nullptr && (unknown = request.ReadPod())) pod = &*unknown;
    if (pod == nullptr) return;
    devices_.question =
        policy_stage_.devices()->Ask(*pod, create.name, AnswerOf(devices_, request));
  }

  // A source of hints. All sources are asked at the same time.
  struct HintSource {
    std::unique_ptr<HintFinder::Question> question;
    HintFinder::Hints hints;
  };
  std::function<void(HintFinder::Hints)> AnswerOf(HintSource& source, Request& request) {
    return [this, &source, &request](HintFinder::Hints hints) {
      source.hints = std::move(hints);
      if (--waiting_ > 0) return;
      auto& all = std::get<CreateRequest>(request.body).hints;
      all = std::move(paths_.hints);
      std::move(devices_.hints.begin(), devices_.hints.end(), std::back_inserter(all));
      // Enters again and so checks the connection, which may be a new one now.
      Enter();
    };
  }

  StatusOr<std::vector<std::string>> ClaimsOf(Request& request, const CreateRequest& create) const {
    const HeldClaims& held = manager_.held_claims();
    const bool variables = policy_stage_.claims_in_variables();
    DetailSet parts;
    if (create.may_have_devices) parts = parts | DetailSet{Detail::kDevices};
    if (variables) parts = parts | DetailSet{Detail::kEnvironment};
    if (parts.empty()) return std::vector<std::string>();
    const ContainerDetails& details = request.Details(parts);
    ShownClaims shown;
    AddClaimsInDevices(details, held, shown);
    const Pod* pod = manager_.snapshot().FindPod(create.pod_id);
    if (pod == nullptr && create.pod) pod = &*create.pod;
    if (variables) RESMGR_RETURN_IF_ERROR(AddClaimsInVariables(details, held, pod, shown));
    for (const std::string& name : shown.ignored)
      policy_stage_.WarnOfClaim(name, pod == nullptr ? create.name : FullName(*pod, create.name));
    return std::vector<std::string>(shown.uids.begin(), shown.uids.end());
  }

  void Place(Request& request) {
    CreateRequest& create = request.TakeCreate();
    if (manager_.snapshot().FindPod(create.pod_id) == nullptr) {
      if (std::optional<Pod> pod = request.ReadPod()) {
        pod->id = create.pod_id;
        create.pod = *std::move(pod);
      }
    }
    StatusOr<std::vector<std::string>> claims = ClaimsOf(request, create);
    if (!claims.ok()) {
      GetLogger("policy").Warn("a container is refused: {}", Message(claims.status()));
      return Refuse(claims.status());
    }
    auto admission = manager_.AdmitCreate(std::move(create), refusal(), *std::move(claims));
    if (!admission.ok()) {
      if (ShouldList(admission.status())) return DecideAfterList();
      Refuse(admission.status());
      return;
    }
    admitted_ = admission->key;
    Adjust(std::move(admission->adjustment));
  }

  std::optional<ContainerKey> admitted_;
  Status refusal_of_other_;
  bool hinted_ = false;  // hints were requested
  int waiting_ = 0;      // answers that are to come
  HintSource paths_;
  HintSource devices_;
};

class UpdateContainerCall final : public DecidedCall {
 public:
  using DecidedCall::DecidedCall;

  void RollBack() override {
    if (admission_) manager_.UpdateFailed(*admission_);
  }
  void After(Request&, const Outcome& outcome) override {
    if (!admission_) return;
    if (outcome.ok()) {
      manager_.UpdateSucceeded(*admission_, SentBy(outcome).values);
    } else {
      manager_.RefusedByRuntime(admission_->key, outcome.message);
      manager_.UpdateFailed(*admission_);
    }
  }

 private:
  void Decide(Request& request) override {
    const auto& update = std::get<ContainerUpdate>(request.body);
    // The container may be unknown because another client created it, or because the id is
    // abbreviated.
    if (MayListMore() && !manager_.Knows(request.container_id)) return DecideAfterList();
    auto admission = manager_.AdmitUpdate(request.container_id, update.resources, refusal());
    if (!admission.ok()) {
      if (ShouldList(admission.status())) return DecideAfterList();
      Refuse(admission.status());
      return;
    }
    admission_ = *std::move(admission);
    Adjust(ResourceValues(admission_->adjustment));
  }

  std::optional<Admission> admission_;
};

class StartContainerCall final : public DecidedCall {
 public:
  using DecidedCall::DecidedCall;

  void RollBack() override { manager_.StartFailed(id_); }
  void After(Request&, const Outcome& outcome) override {
    if (outcome.ok()) {
      manager_.StartSucceeded(id_);
    } else if (outcome.unclear()) {
      manager_.StartUnclear(id_);
    } else {
      manager_.RefusedByRuntime(id_, outcome.message);
      manager_.StartFailed(id_);
    }
  }

 private:
  void Decide(Request& request) override {
    id_ = request.container_id;
    const std::weak_ptr<void> alive = this->alive();
    auto wait = manager_.AdmitStart(id_, [this](Status status) {
      if (status.ok()) {
        Pass();
      } else {
        Refuse(std::move(status));
      }
    });
    if (!alive.expired()) wait_ = std::move(wait);
  }

  ContainerId id_;
  std::unique_ptr<StartWait> wait_;
};

// Reports the runtime's actions to the resource manager.
class NoticeCall final : public StageCall {
 public:
  explicit NoticeCall(PolicyStage& stage) : StageCall(stage), manager_(stage.manager()) {}

  bool ShowsAsked(const Request& request, bool shares_in_file) const override {
    return manager_.set_later().SentOtherNumbers(request.container_id, shares_in_file);
  }
  void ShowAsked(const Request& request, CpuNumbers& reported) const override {
    manager_.set_later().ShowAsked(request.container_id, reported);
  }
  void After(Request& request, const Outcome& outcome) override {
    switch (request.operation()) {
      case Operation::kRunPodSandbox:
        return NotePod(request, outcome);
      case Operation::kContainerStatus:
        return NoteStatus(request.container_id, outcome);
      case Operation::kStopContainer:
        if (IsFound(outcome)) manager_.ContainerStopped(request.container_id);
        return;
      case Operation::kRemoveContainer:
        if (IsFound(outcome)) manager_.ContainerRemoved(request.container_id);
        return;
      case Operation::kStopPodSandbox:
        if (IsFound(outcome)) manager_.PodStopped(request.pod_id);
        return;
      case Operation::kRemovePodSandbox:
        if (IsFound(outcome)) manager_.PodRemoved(request.pod_id);
        return;
      case Operation::kUpdatePodSandboxResources:
        if (outcome.pod_updated()) {
          const auto& update = std::get<PodUpdate>(request.body);
          manager_.PodResourcesChanged(request.pod_id, update.overhead, update.resources);
        }
        return;
      default:
        return;
    }
  }

 private:
  void NotePod(Request& request, const Outcome& outcome) {
    if (!outcome.ok() || outcome.id.empty()) return;
    auto& pod = std::get<Pod>(request.body);
    pod.id = PodSandboxId(outcome.id);
    // This stage is the last one that sees the request, so the pod can be moved.
    manager_.PodCreated(std::move(pod), SentBy(outcome));
  }
  // A kubelet asks for a status when it notices a change: this reveals containers that ended by
  // themselves, as init containers do.
  void NoteStatus(const ContainerId& id, const Outcome& outcome) {
    if (outcome.gone() && manager_.Knows(id)) manager_.ContainerRemoved(id);
    if (outcome.ok() && !outcome.id.empty()) manager_.ContainerExited(ContainerId(outcome.id));
  }

  ResourceManager& manager_;
};

}  // namespace

PolicyStage::PolicyStage(ResourceManager& manager, HintFinder& hints,
                         std::function<Status()> connect, DeviceHints* devices)
    : Stage({.name = "policy", .rank = StageRank::kPolicy, .operations = OperationSet::All()}),
      manager_(manager),
      hints_(hints),
      devices_(devices),
      connect_(std::move(connect)),
      claim_warnings_(kClaimWarnings, kClaimWarningPeriod) {}

void PolicyStage::WarnOfClaim(std::string_view shown, std::string_view container) {
  const auto others = claim_warnings_.Pass(RateLimit::Clock::now());
  if (!others) return;
  GetLogger("policy").Warn(
      "container {} shows {}, for which no CPUs are held on this node: it is placed as others{}",
      Printable(container), Printable(shown), NotLogged(*others));
}

bool PolicyStage::OwnsPlacement() const {
  return manager_.policy().name() != "null";
}

std::unique_ptr<StageCall> PolicyStage::Begin(const Request& request) {
  switch (request.operation()) {
    case Operation::kCreateContainer:
      return std::make_unique<CreateContainerCall>(*this);
    case Operation::kStartContainer:
      return std::make_unique<StartContainerCall>(*this);
    case Operation::kUpdateContainerResources:
      // A request for another operating system, or an empty one, does not concern the policy.
      if (!std::get<ContainerUpdate>(request.body).has_linux) return nullptr;
      return std::make_unique<UpdateContainerCall>(*this);
    case Operation::kOther:
      return nullptr;
    default:
      return std::make_unique<NoticeCall>(*this);
  }
}

}  // namespace resmgr

// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/claims.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/captured_log.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::HasCode;
using test::Must;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

using enum QosClass;

Claim ClaimFor(const std::string& uid, int cpus, const ClaimOptions& options = {}) {
  return {.uid = uid,
          .namespace_name = "ns",
          .name = "claim-" + uid,
          .parts = {{.device = "cpu", .cpus = cpus}},
          .options = options};
}

class ClaimsTest : public testing::Test {
 protected:
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }
  using Reply = std::optional<StatusOr<ClaimGrant>>;

  void Reserve(const Claim& claim, Reply& reply) {
    manager().claims().Reserve(claim, [&reply](StatusOr<ClaimGrant> grant) { reply = grant; });
  }
  Status Released(const std::string& uid) {
    std::optional<Status> reply;
    manager().claims().Release(uid, [&reply](const Status& status) { reply = status; });
    EXPECT_TRUE(node_.RunUntil([&] { return reply.has_value(); }));
    return reply.value_or(Internal("no reply"));
  }
  StatusOr<ContainerId> CreateCarrier(const std::string& name, std::vector<std::string> uids) {
    const CreateRequest request =
        test::TestNode::Request(node_.AddPod(name, kGuaranteed), name, 1000);
    StatusOr<Admission> admission = manager().AdmitCreate(
        CreateRequest(request), ResourceManager::Refusal::kFinal, std::move(uids));
    if (!admission.ok()) return admission.status();
    return node_.Created(request, *admission);
  }
  // The first claim has these CPUs after the start.
  void RestartWith(const CpuSet& cpus) {
    node_.Restart([this, &cpus] {
      spoil_ = [cpus](Plan& plan) {
        const ContainerKey part{uint64_t{3} << 62};
        std::erase_if(plan.changes, [&](const PlacementChange& one) { return one.key == part; });
        Placement placement;
        if (!cpus.empty()) placement.cpus = cpus;
        placement.exclusive = cpus;
        plan.changes.push_back({part, placement});
      };
    });
  }

  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  std::function<void(Plan&)> spoil_;   // what the policy of the next start does to its plans
  // CPUs 0-7, of which 0-1, 2-3, ... are cores.
  test::TestNode node_{test::MakeMachine({.cores = 4, .threads = 2, .siblings_apart = false}),
                       [this](const Machine& machine) {
                         auto policy = std::make_unique<test::FirstFitPolicy>(machine);
                         policy->spoil = spoil_;
                         return policy;
                       }};
};

TEST_F(ClaimsTest, TheReplyWaitsUntilSharedContainersHaveLeft) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Reply reply;
  Reserve(ClaimFor("u1", 2), reply);
  ASSERT_THAT(runtime().updates, SizeIs(1));
  EXPECT_EQ(runtime().updates[0].id, shared);
  EXPECT_FALSE(reply.has_value());
  runtime().AnswerAll();
  ASSERT_TRUE(reply.has_value());
  ASSERT_TRUE(reply->ok()) << reply->status();
  EXPECT_EQ((*reply)->All().size(), 2);
  EXPECT_FALSE(test::Cpus(runtime().CpusOf(shared)).Intersects((*reply)->All()));
  EXPECT_THAT(manager().claims().Held(), SizeIs(1));
}

TEST_F(ClaimsTest, TheSameClaimHasTheSameCpus) {
  const auto grant = node_.Reserve(ClaimFor("u1", 2));
  EXPECT_EQ(node_.Reserve(ClaimFor("u1", 2)), grant);
  EXPECT_EQ(node_.Reserve(ClaimFor("u1", 3)).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ClaimsTest, AReservationThatAContainerDoesNotLeaveIsTakenBack) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const std::string before = node_.Placed(shared);
  Reply reply;
  Reserve(ClaimFor("u1", 2), reply);
  ASSERT_TRUE(node_.RunUntil([&] { return reply.has_value(); }));
  EXPECT_EQ(reply->status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(reply->status())), HasSubstr("shared"));
  EXPECT_THAT(manager().claims().Held(), IsEmpty());
  EXPECT_EQ(node_.Placed(shared), before);
}

TEST_F(ClaimsTest, ReservationsEndWithTheConnection) {
  node_.Run("shared", kBurstable, 100);
  Reply reply;
  Reserve(ClaimFor("u1", 2), reply);
  manager().RuntimeDisconnected();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(manager().claims().Held(), IsEmpty());
}

TEST_F(ClaimsTest, ReleasedCpusServeOthersInTheSameEvent) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const std::string before = node_.Placed(shared);
  ASSERT_TRUE(node_.Reserve(ClaimFor("u1", 2)).ok());
  EXPECT_NE(node_.Placed(shared), before);
  EXPECT_TRUE(Released("u1").ok());
  EXPECT_EQ(node_.Placed(shared), before);
  ASSERT_THAT(runtime().updates, SizeIs(1));
  EXPECT_EQ(runtime().updates[0].id, shared);
  EXPECT_TRUE(Released("u1").ok()) << "it is unknown now";
}

TEST_F(ClaimsTest, AContainerRunsOnItsClaim) {
  const auto grant = Must(node_.Reserve(ClaimFor("u1", 2)));
  const auto id = Must(CreateCarrier("carrier", {"u1"}));
  EXPECT_EQ(node_.Exclusive(id), grant.All().ToString());
  node_.Start(id);
  node_.Stop(id);
  node_.Remove(id);
  EXPECT_THAT(manager().claims().Held(), SizeIs(1)) << "until its release";
  EXPECT_TRUE(CreateCarrier("next", {"u1"}).ok());
}

TEST_F(ClaimsTest, AContainerWithAnUnknownClaimIsRefused) {
  const auto refused = CreateCarrier("carrier", {"typed-by-a-user"});
  EXPECT_EQ(refused.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("resourceClaims"));
  EXPECT_EQ(node_.KnownContainers(), 0U);
}

TEST_F(ClaimsTest, ClaimsOutliveTheDaemon) {
  node_.KeepState(files_);
  const auto grant = node_.Reserve(ClaimFor("u1", 2));
  const auto other = node_.Reserve(ClaimFor("u2", 1));
  ASSERT_TRUE(grant.ok() && other.ok());
  const auto carrier = Must(CreateCarrier("carrier", {"u1"}));
  node_.Start(carrier);
  node_.FlushState();
  const size_t updates = runtime().history.size();
  node_.Restart();
  EXPECT_THAT(manager().claims().Held(), ElementsAre(*grant, *other));
  EXPECT_EQ(node_.Exclusive(carrier), grant->All().ToString());
  EXPECT_EQ(runtime().history.size(), updates) << "no container moves";
  EXPECT_EQ(node_.Reserve(ClaimFor("u2", 1)), other) << "with no container yet";
  const auto second = Must(CreateCarrier("second", {"u2"}));
  EXPECT_EQ(node_.Exclusive(second), other->All().ToString());
  EXPECT_EQ(CreateCarrier("third", {"u1"}).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(Released("u2").ok());
  node_.Restart();
  EXPECT_THAT(manager().claims().Held(), SizeIs(1));
}

// A daemon that ends before the reply: the next one holds the CPUs, and the reply waits as before.
TEST_F(ClaimsTest, ARestartBeforeTheReplyKeepsTheReservation) {
  node_.KeepState(files_);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Reply lost;
  Reserve(ClaimFor("u1", 2), lost);
  const std::vector<ClaimGrant> reserved = manager().claims().Held();
  ASSERT_THAT(reserved, SizeIs(1));
  runtime().DropAll();
  node_.Restart();
  EXPECT_FALSE(lost.has_value());
  EXPECT_EQ(manager().claims().Held(), reserved);
  Reply reply;
  Reserve(ClaimFor("u1", 2), reply);
  EXPECT_FALSE(reply.has_value()) << "the shared container has not left";
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return reply.has_value();
  }));
  ASSERT_TRUE(reply->ok()) << reply->status();
  EXPECT_EQ(**reply, reserved[0]);
  EXPECT_FALSE(test::Cpus(runtime().CpusOf(shared)).Intersects((*reply)->All()));
}

// The container runs on its claim, and stays there.
TEST_F(ClaimsTest, ACarrierWhoseCreationHadNoReplyIsFound) {
  node_.KeepState(files_);
  const auto grant = Must(node_.Reserve(ClaimFor("u1", 2)));
  const CreateRequest request =
      test::TestNode::Request(node_.AddPod("carrier", kGuaranteed), "carrier", 1000);
  const Admission admission =
      Must(manager().AdmitCreate(CreateRequest(request), ResourceManager::Refusal::kFinal, {"u1"}));
  const ContainerId id = node_.Hold(request, admission);
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(id), grant.All().ToString());
  EXPECT_EQ(CreateCarrier("second", {"u1"}).status().code(), StatusCode::kAlreadyExists);
}

// A daemon ended before shared containers had left the CPUs of a claim: they carry none.
TEST_F(ClaimsTest, SharedContainersOnTheCpusOfAClaimAreNoCarriers) {
  node_.KeepState(files_);
  for (const int shared : {1, 2}) {
    const std::string uid = fmt::format("u{}", shared);
    const auto grant = Must(node_.Reserve(ClaimFor(uid, 2)));
    std::vector<ContainerId> ids;
    ids.reserve(static_cast<size_t>(shared));
    for (int i = 0; i < shared; ++i)
      ids.push_back(node_.Run(fmt::format("shared-{}-{}", shared, i), kBurstable, 100));
    node_.FlushState();
    node_.Restart([&] {
      for (const ContainerId& id : ids)
        runtime().Apply(id, {.cpus = grant.All()});
    });
    EXPECT_TRUE(manager().synchronizer().ready());
    EXPECT_THAT(manager().claims().Held(), ElementsAre(grant));
    EXPECT_THAT(manager().carriers(), IsEmpty());
    for (const ContainerId& id : ids) {
      EXPECT_EQ(node_.Exclusive(id), "");
      EXPECT_FALSE(test::Cpus(node_.Placed(id)).Intersects(grant.All())) << node_.Placed(id);
    }
    runtime().AnswerAll();
    const auto carrier = CreateCarrier(fmt::format("carrier-{}", shared), {uid});
    EXPECT_TRUE(carrier.ok()) << carrier.status();
    ASSERT_TRUE(Released(uid).ok());
    node_.Restart();
  }
}

// The policy was null meanwhile, or others have moved it.
TEST_F(ClaimsTest, ACarrierThatIsElsewhereComesBack) {
  node_.KeepState(files_);
  const auto grant = Must(node_.Reserve(ClaimFor("u1", 2)));
  const auto carrier = Must(CreateCarrier("carrier", {"u1"}));
  node_.Start(carrier);
  node_.FlushState();
  node_.Restart([&] { runtime().Apply(carrier, {.cpus = CpuSet::Range(0, 7)}); });
  EXPECT_EQ(node_.Exclusive(carrier), grant.All().ToString());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(carrier), grant.All().ToString());
  EXPECT_EQ(CreateCarrier("second", {"u1"}).status().code(), StatusCode::kAlreadyExists);
}

// Nothing is kept of these, so only their CPUs tell.
TEST_F(ClaimsTest, ACarrierIsFoundByItsCpusOnlyWhereNothingElseCanBeMeant) {
  node_.KeepState(files_);
  const auto single = node_.Reserve(ClaimFor("single", 2));
  Claim elsewhere = ClaimFor("elsewhere", 2);
  elsewhere.namespace_name = "other";
  const auto foreign = node_.Reserve(elsewhere);
  ASSERT_TRUE(single.ok() && foreign.ok());
  const auto hold = [this](const std::string& name, const CpuSet& cpus) {
    return node_.Hold(test::TestNode::Request(node_.AddPod(name, kBurstable), name, 100),
                      {.adjustment = {.cpus = cpus}});
  };
  hold("foreign", foreign->All());
  const ContainerId first = hold("first", single->All());
  node_.Restart();
  EXPECT_THAT(manager().carriers(), SizeIs(1));
  EXPECT_EQ(node_.Exclusive(first), single->All().ToString());
  runtime().Remove(first);
  node_.Restart();
  hold("second", single->All());
  hold("third", single->All());
  node_.Restart();
  EXPECT_TRUE(manager().synchronizer().ready());
  EXPECT_THAT(manager().claims().Held(), SizeIs(2));
  EXPECT_THAT(manager().carriers(), IsEmpty());
}

TEST_F(ClaimsTest, ContainersOfOnePodCarryASharedClaimAfterARestart) {
  node_.KeepState(files_);
  const auto grant = Must(node_.Reserve(ClaimFor("u1", 2, {.share_within_pod = true})));
  const PodSandboxId pod = node_.AddPod("pod", kGuaranteed);
  std::vector<ContainerId> ids;
  for (const std::string name : {"a", "b"}) {
    const CreateRequest request = test::TestNode::Request(pod, name, 1000);
    const Admission admission = Must(
        manager().AdmitCreate(CreateRequest(request), ResourceManager::Refusal::kFinal, {"u1"}));
    ids.push_back(node_.Created(request, admission));
  }
  node_.FlushState();
  node_.Restart();
  EXPECT_THAT(manager().carriers(), SizeIs(2));
  for (const ContainerId& id : ids)
    EXPECT_EQ(node_.Placed(id), grant.All().ToString());
}

// No container of the pod has these CPUs for itself, and still no other may be there.
TEST_F(ClaimsTest, AStartWaitsForOthersOnCpusThatItsPodShares) {
  node_.Run("shared", kBurstable, 100);
  Reply reply;
  Reserve(ClaimFor("u1", 2, {.share_within_pod = true}), reply);
  const PodSandboxId pod = node_.AddPod("pod", kGuaranteed);
  std::vector<ContainerId> ids;
  for (const std::string name : {"a", "b"}) {
    const CreateRequest request = test::TestNode::Request(pod, name, 1000);
    const Admission admission = Must(
        manager().AdmitCreate(CreateRequest(request), ResourceManager::Refusal::kFinal, {"u1"}));
    ids.push_back(node_.Created(request, admission));
  }
  const test::AskedStart start(manager(), ids[0]);
  EXPECT_FALSE(start.answered()) << "the shared container may be there";
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return start.answered();
  }));
  EXPECT_TRUE(start.answer().ok()) << start.answer();
  node_.Started(ids[0]);
  node_.Start(ids[1]);
}

TEST_F(ClaimsTest, ThePodsOfAClaimAreKeptAndMayBeOthersLater) {
  node_.KeepState(files_);
  Claim claim = ClaimFor("u1", 2);
  claim.pods = {"pod-1"};
  const auto grant = node_.Reserve(claim);
  claim.pods = {"pod-1", "pod-2"};
  EXPECT_EQ(node_.Reserve(claim), grant);
  node_.FlushState();
  node_.Restart();
  EXPECT_EQ(manager().held_claims().Find("u1")->claim.pods, claim.pods);
}

TEST_F(ClaimsTest, AFailedUpdateTakesNoCpusOfAClaimBack) {
  const ContainerId app = node_.Run("app", kGuaranteed, 4000);
  const Admission smaller = *manager().AdmitUpdate(app, test::TestNode::Resources(2000));
  ASSERT_EQ(node_.Exclusive(app), "1-2");
  Reply reply;
  Reserve(ClaimFor("u1", 2), reply);
  const std::vector<ClaimGrant> reserved = manager().claims().Held();
  ASSERT_THAT(reserved, SizeIs(1));
  ASSERT_EQ(reserved[0].All(), CpuSet::Range(3, 4)) << "as soon as the container has left";
  manager().UpdateFailed(smaller);
  EXPECT_EQ(manager().claims().Held(), reserved);
  EXPECT_EQ(node_.Exclusive(app), "1-2,5-6");
  runtime().AnswerAll();
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->ok()) << reply->status();
}

// The runtime reports the container where it was before an update that was lost with the daemon.
TEST_F(ClaimsTest, AContainerThatIsFoundOnTheCpusOfAClaimLeavesThem) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 4000);
  node_.FlushState();
  ASSERT_TRUE(manager().AdmitUpdate(app, test::TestNode::Resources(2000)).ok());
  Reply lost;
  Reserve(ClaimFor("u1", 2), lost);
  const std::vector<ClaimGrant> reserved = manager().claims().Held();
  ASSERT_EQ(reserved.at(0).All(), CpuSet::Range(3, 4));
  node_.FlushState();
  node_.Restart();
  EXPECT_EQ(manager().claims().Held(), reserved);
  EXPECT_FALSE(test::Cpus(node_.Exclusive(app)).Intersects(reserved[0].All()));
}

TEST_F(ClaimsTest, CpusThatAClaimLosesAreLogged) {
  const test::CapturedLog log;
  ASSERT_TRUE(node_.Reserve(ClaimFor("u1", 2)).ok());
  ASSERT_TRUE(node_.SetOffline({1}).ok());
  EXPECT_EQ(log.Times("claim ns/claim-u1 had CPUs 1-2 and has CPUs 2-3 now"), 1) << log.Text();
}

// Its pod may run on it.
TEST_F(ClaimsTest, AClaimThatWasGrantedIsNotTakenBackByALaterCall) {
  node_.KeepState(files_);
  const auto grant = Must(node_.Reserve(ClaimFor("u1", 2)));
  Reply reply;
  Reserve(ClaimFor("u1", 2), reply);
  ASSERT_FALSE(reply.has_value()) << "it waits for the disk";
  manager().RuntimeDisconnected();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(manager().claims().Held(), ElementsAre(grant));
}

// The kubelet would count it as prepared, and the pod's containers would be refused for ever.
TEST_F(ClaimsTest, AReservationThatLosesCpusBeforeItsReplyIsTakenBack) {
  node_.Run("app", kGuaranteed, 3000);
  node_.Run("shared", kBurstable, 100);
  Reply reply;
  Reserve(ClaimFor("u1", 4), reply);
  ASSERT_EQ(manager().claims().Held().at(0).All(), CpuSet::Range(4, 7));
  ASSERT_FALSE(reply.has_value()) << "the shared container is still there";
  ASSERT_TRUE(node_.SetOffline({7}).ok());
  runtime().AnswerAll();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(manager().claims().Held(), IsEmpty());
  ASSERT_TRUE(node_.SetOffline({}).ok());
  EXPECT_TRUE(node_.Reserve(ClaimFor("u1", 4)).ok()) << "at the kubelet's next try";
}

TEST_F(ClaimsTest, ALaterCallWhoseClaimLosesCpusFailsAndReleasesNothing) {
  node_.KeepState(files_);
  node_.Run("app", kGuaranteed, 3000);
  ASSERT_TRUE(node_.Reserve(ClaimFor("u1", 4)).ok());
  Reply reply;
  Reserve(ClaimFor("u1", 4), reply);
  ASSERT_FALSE(reply.has_value()) << "it waits for the disk";
  ASSERT_TRUE(node_.SetOffline({7}).ok());
  ASSERT_TRUE(node_.RunUntil([&] { return reply.has_value(); }));
  EXPECT_EQ(reply->status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(manager().claims().Held(), SizeIs(1));
}

TEST_F(ClaimsTest, AFormerCarrierHasToLeaveTheCpusOfTheNextClaim) {
  const auto grant = Must(node_.Reserve(ClaimFor("u1", 2)));
  const auto carrier = Must(CreateCarrier("carrier", {"u1"}));
  node_.Start(carrier);
  ASSERT_TRUE(Released("u1").ok());
  Reply reply;
  Reserve(ClaimFor("u2", 2), reply);
  const std::vector<ClaimGrant> held = manager().claims().Held();
  ASSERT_THAT(held, SizeIs(1));
  ASSERT_TRUE(held[0].All().Intersects(grant.All()));
  EXPECT_FALSE(reply.has_value()) << "the container may run there";
  runtime().AnswerAll();
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->ok()) << reply->status();
}

TEST_F(ClaimsTest, WholeCoresOfHalfACoreAreNever) {
  const auto refused = node_.Reserve(ClaimFor("u1", 3, {.whole_cores = true}));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("whole cores"));
}

// Kubelets ask again and again: their calls do not gather.
TEST_F(ClaimsTest, CallsDoNotWaitForADiskThatRefuses) {
  std::atomic<bool> refuses = false;
  files_.fail = [&refuses] { return refuses ? Unavailable("no disk") : OkStatus(); };
  node_.KeepState(files_);
  ASSERT_TRUE(node_.Reserve(ClaimFor("u1", 1)).ok());
  refuses = true;
  EXPECT_EQ(node_.Reserve(ClaimFor("u2", 2)).status().code(), StatusCode::kUnavailable);
  Reply reply;
  Reserve(ClaimFor("u2", 2), reply);
  ASSERT_TRUE(reply.has_value()) << "at once";
  EXPECT_EQ(reply->status().code(), StatusCode::kUnavailable);
  std::optional<Status> released;
  manager().claims().Release("u1", [&released](const Status& status) { released = status; });
  ASSERT_THAT(released, Optional(HasCode(StatusCode::kUnavailable)));
  EXPECT_THAT(manager().claims().Held(), IsEmpty());
  refuses = false;
  node_.FlushState();
}

// A start with another configuration: the file for the runtime follows what is held and kept.
TEST_F(ClaimsTest, OtherCpusOfAClaimAreKeptAndFewerAreNotPrepared) {
  node_.KeepState(files_);
  ASSERT_TRUE(node_.Reserve(ClaimFor("u1", 2)).ok());
  node_.FlushState();
  const auto all = [this] { return manager().claims().Held().at(0).All(); };
  RestartWith({5, 6});
  EXPECT_EQ(all(), CpuSet({5, 6}));
  node_.Restart([this] { spoil_ = nullptr; });
  EXPECT_EQ(all(), CpuSet({5, 6}));
  EXPECT_TRUE(node_.Reserve(ClaimFor("u1", 2)).ok());
  RestartWith({});
  EXPECT_EQ(node_.Reserve(ClaimFor("u1", 2)).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ClaimsTest, OtherCpusThatAreNotWhatTheClaimAsksForAreNotPrepared) {
  node_.KeepState(files_);
  node_.Run("other", kGuaranteed, 1000);  // on CPU 1
  const Claim claim = ClaimFor("u1", 2, {.whole_cores = true});
  ASSERT_TRUE(node_.Reserve(claim).ok());
  node_.FlushState();
  RestartWith({6, 7});
  const auto whole = node_.Reserve(claim);
  EXPECT_TRUE(whole.ok()) << whole.status();
  RestartWith({5, 6});
  const Status halves = node_.Reserve(claim).status();
  EXPECT_EQ(halves.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(halves)), HasSubstr("holds 5-6"));
}

// Calls about containers that succeed and fail in any order, among them creations and updates whose
// place another may have meanwhile.
class RandomClaimsTest : public ClaimsTest, test::Draws {
 protected:
  RandomClaimsTest() : Draws(test::SeedOr(46)) {}

  void Step() {
    const int64_t what = Number(1, 10);
    if (what <= 2) {
      Create();
    } else if (what <= 4) {
      BeginUpdate();
    } else if (what <= 6) {
      EndUpdate();
    } else if (what <= 8) {
      ReserveOne();
    } else if (what <= 9 && !granted_.empty()) {
      const auto gone = OneOf(granted_);
      EXPECT_EQ(Released(gone.first), OkStatus());
      granted_.erase(gone.first);
    } else if (!ids_.empty()) {
      node_.Remove(TakeFrom(ids_));
    }
    runtime().AnswerAll();
    Check();
  }

  int grants() const { return grants_; }

 private:
  void Create() {
    const bool shares = Chance(40);
    const std::string name = "c" + std::to_string(++made_);
    const CreateRequest request =
        test::TestNode::Request(node_.AddPod(name, shares ? kBurstable : kGuaranteed), name,
                                shares ? 100 : 1000 * Number(1, 3));
    const auto admission =
        manager().AdmitCreate(CreateRequest(request), ResourceManager::Refusal::kFinal);
    if (!admission.ok()) return;
    runtime().AnswerAll();
    if (Chance(30)) return manager().CreateFailed(admission->key, Internal("no"));
    ids_.push_back(node_.Created(request, *admission));
  }
  void BeginUpdate() {
    if (ids_.empty()) return;
    const auto admission =
        manager().AdmitUpdate(OneOf(ids_), test::TestNode::Resources(1000 * Number(1, 4)));
    if (admission.ok()) updates_.push_back(*admission);
  }
  void EndUpdate() {
    if (updates_.empty()) return;
    const Admission update = TakeFrom(updates_);
    Chance(50) ? manager().UpdateFailed(update) : manager().UpdateSucceeded(update);
  }
  void ReserveOne() {
    const std::string uid = "u" + std::to_string(++made_);
    const auto grant = node_.Reserve(ClaimFor(uid, static_cast<int>(Number(1, 3))));
    if (!grant.ok()) return;
    granted_.emplace(uid, *grant);
    ++grants_;
  }
  void Check() {
    CpuSet claimed;
    for (const ClaimGrant& held : manager().claims().Held()) {
      EXPECT_FALSE(claimed.Intersects(held.All()));
      claimed |= held.All();
    }
    CpuSet promised;
    for (const auto& [uid, grant] : granted_)
      promised |= grant.All();
    EXPECT_EQ(claimed, promised);
    for (const ContainerId& id : ids_)
      EXPECT_FALSE(test::Cpus(node_.Exclusive(id)).Intersects(claimed)) << id.value();
  }

  std::vector<ContainerId> ids_;
  std::vector<Admission> updates_;
  std::map<std::string, ClaimGrant> granted_;
  int made_ = 0;
  int grants_ = 0;
};

TEST_F(RandomClaimsTest, NoFailureTakesCpusOfAGrantedClaim) {
  SCOPED_TRACE(test::Repeat(test::SeedOr(46)));
  for (int step = 0; step < 1000; ++step) {
    Step();
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
  EXPECT_GT(grants(), 30);
}

}  // namespace
}  // namespace resmgr

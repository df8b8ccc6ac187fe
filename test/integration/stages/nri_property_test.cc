// SPDX-License-Identifier: Apache-2.0
// Random plugins behind the real relay, which adjust, refuse, hang and die while containers are
// created, updated and removed: the runtime receives the result of a merge that is written here
// anew, and nothing stays behind.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/stages/node_fixture.h"
#include "test/support/cri_client/specs.h"
#include "test/support/sanitizer.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

// A plugin's answer to its next question.
struct Deed {
  enum class Kind { kAnswer, kRefuse, kHang, kDie };
  Kind kind = Kind::kAnswer;
  std::map<std::string, std::string> env{};          // variables of a container that is created
  std::map<std::string, std::string> annotations{};  // the same
  std::optional<int64_t> memory{};                   // memory limit of a container that is updated
};

struct Member {
  nri::test::FakePluginOptions options;
  bool hangs = false;   // the plugin hangs and changes nothing
  bool needed = false;  // a call fails where it does not answer
  Deed deed{};          // of the next call, on the loop
  std::unique_ptr<nri::test::FakePlugin> plugin{};

  std::string full_name() const { return options.index + "-" + options.name; }
};

class NriPropertyTest : public StagesTest, public testing::WithParamInterface<uint32_t> {
 protected:
  // No call takes longer, with one plugin that hangs.
  static constexpr std::chrono::seconds kPatience{20};

  NriPropertyTest() {
    NriHostingOptions hosting;
    hosting.host.socket = File("nri.sock");
    hosting.host.plugin_path = "";
    hosting.host.strikes = 0;
    hosting.host.settings.request_timeout = kPatience / 2;
    hosting.host.plugins["25-hangs"].request_timeout = std::chrono::milliseconds(30);
    hosting.host.plugins["30-c"] = {.failure = FailurePolicy::kFail,
                                    .request_timeout = kPatience / 2};
    Start({}, std::move(hosting));
    for (Member& member : members_)
      Connect(member);
  }
  ~NriPropertyTest() override {
    OnLoop([this] {
      for (Member& member : members_)
        member.plugin.reset();
    });
    Stop();
  }

  // Waits until the plugin is shown these containers when it connects, without those that are
  // reported as removed afterwards, such as refused creations.
  void Connect(Member& member, const std::set<std::string>& containers = {}) {
    Until([&] {
      StatusOr<UniqueFd> socket = ConnectUnix(File("nri.sock"));
      if (!socket.ok()) return false;
      member.plugin =
          std::make_unique<nri::test::FakePlugin>(loop(), *std::move(socket), member.options);
      Prepare(member);
      return true;
    });
    Until([&] {
      std::set<std::string> shown;
      for (const api::Container& container : member.plugin->inventory.containers())
        shown.insert(container.name());
      for (const std::string& told : member.plugin->told)
        if (told.find("RemoveContainer") != std::string::npos)
          shown.erase(told.substr(told.find('/') + 1));
      return member.plugin->synchronized && shown == containers;
    });
  }

  void Until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    bool met = false;
    while (!met && std::chrono::steady_clock::now() < end)
      OnLoop([&] { met = condition(); });
    ASSERT_TRUE(met);
  }

  // The answer follows, now or never.
  Status Do(Member& member) {
    switch (member.deed.kind) {
      case Deed::Kind::kAnswer:
        return OkStatus();
      case Deed::Kind::kRefuse:
        return FailedPrecondition("no");
      case Deed::Kind::kDie:
        loop().Post([&member] { member.plugin->Die(); });
        [[fallthrough]];
      case Deed::Kind::kHang:
        member.plugin->Hang();
    }
    return OkStatus();
  }

  void Prepare(Member& member) {
    member.plugin->create =
        [this,
         &member](const api::CreateContainerRequest&) -> StatusOr<api::CreateContainerResponse> {
      if (const Status done = Do(member); !done.ok()) return done;
      api::CreateContainerResponse response;
      for (const auto& [key, value] : member.deed.env) {
        api::KeyValue& variable = *response.mutable_adjust()->add_env();
        variable.set_key(key);
        variable.set_value(value);
      }
      for (const auto& [key, value] : member.deed.annotations)
        (*response.mutable_adjust()->mutable_annotations())[key] = value;
      return response;
    };
    member.plugin->update =
        [this, &member](
            const api::UpdateContainerRequest& request) -> StatusOr<api::UpdateContainerResponse> {
      if (const Status done = Do(member); !done.ok()) return done;
      api::UpdateContainerResponse response;
      if (!member.deed.memory) return response;
      api::ContainerUpdate& update = *response.add_update();
      update.set_container_id(request.container().id());
      update.mutable_linux()->mutable_resources()->mutable_memory()->mutable_limit()->set_value(
          *member.deed.memory);
      return response;
    };
  }

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  void DrawDeeds() {
    OnLoop([this] {
      for (Member& member : members_) {
        member.deed = {};
        if (member.hangs) {
          if (Below(8) == 0) member.deed.kind = Deed::Kind::kHang;
          continue;
        }
        const uint32_t kind = Below(20);
        if (kind == 0) member.deed.kind = Deed::Kind::kRefuse;
        if (kind == 1) member.deed.kind = Deed::Kind::kDie;
        // Few enough names that two plugins sometimes want the same.
        for (uint32_t i = Below(3); i > 0; --i)
          member.deed.env[fmt::format("VARIABLE_{}", Below(12))] = member.full_name();
        if (Below(2) == 0) {
          member.deed.annotations[fmt::format("key-{}", Below(8))] = member.full_name();
        }
        if (Below(4) == 0) member.deed.memory = int64_t{1} << (20 + Below(10));
      }
    });
  }

  // The result of the deeds; nullopt is a refusal. The deeds of plugins behind a refusing one do
  // not count.
  struct Merged {
    std::map<std::string, std::string> env{};
    std::map<std::string, std::string> annotations{};
    std::optional<int64_t> memory{};
  };
  std::optional<Merged> Merge(bool creates) {
    Merged merged;
    dead_.clear();
    for (Member& member : members_) {
      const Deed& deed = member.deed;
      if (deed.kind == Deed::Kind::kRefuse) return std::nullopt;
      if (deed.kind == Deed::Kind::kDie) {
        dead_.push_back(&member);
        if (member.needed) return std::nullopt;
      }
      if (deed.kind != Deed::Kind::kAnswer) continue;
      if (!creates) {
        if (deed.memory && merged.memory) return std::nullopt;
        if (deed.memory) merged.memory = deed.memory;
        continue;
      }
      // Each has one owner.
      for (const auto& each : deed.env)
        if (!merged.env.insert(each).second) return std::nullopt;
      for (const auto& each : deed.annotations)
        if (!merged.annotations.insert(each).second) return std::nullopt;
    }
    return merged;
  }

  // The runtime's record of a call ends some time after its answer was read.
  void ForgetCalls() {
    const auto late = std::chrono::steady_clock::now() + kPatience;
    do {
      runtime_.ForgetCalls();
    } while (!runtime_.Calls("CreateContainer").empty() && std::chrono::steady_clock::now() < late);
    ASSERT_TRUE(runtime_.Calls("CreateContainer").empty());
  }

  // Hung plugins answer, and dead ones connect again; they are shown the containers.
  void Recover() {
    OnLoop([this] {
      for (Member& member : members_)
        if (member.hangs) member.plugin->Release();
    });
    for (Member* const member : dead_) {
      std::set<std::string> alive;
      for (const auto& [name, id] : containers_)
        alive.insert(name);
      OnLoop([member] { member->plugin.reset(); });
      Connect(*member, alive);
    }
    dead_.clear();
  }

  void Create(CriClient& client) {
    const auto wanted = Merge(/*creates=*/true);
    const std::string name = fmt::format("c{}", next_++);
    const auto id =
        client.CreateContainer(pod_, MakeBestEffortPod("p"), MakeBestEffortContainer(name));
    EXPECT_EQ(id.ok(), wanted.has_value()) << id.status();
    EXPECT_EQ(runtime_.Calls("CreateContainer").size(), wanted ? 1u : 0u);
    if (!id.ok() || !wanted) return;
    containers_[name] = *id;
    cri::CreateContainerRequest request;
    ASSERT_TRUE(request.ParseFromString(Received("CreateContainer")));
    std::map<std::string, std::string> env;
    for (const cri::KeyValue& variable : request.config().envs())
      if (variable.key().starts_with("VARIABLE_")) env[variable.key()] = variable.value();
    std::map<std::string, std::string> annotations;
    for (const auto& [key, value] : request.config().annotations())
      if (key.starts_with("key-")) annotations[key] = value;
    EXPECT_EQ(env, wanted->env);
    EXPECT_EQ(annotations, wanted->annotations);
  }

  void Update(CriClient& client, const std::string& id) {
    const auto wanted = Merge(/*creates=*/false);
    cri::LinuxContainerResources resources;
    // No earlier update has this value, which tells it from the brain's own updates, as after a
    // refusal.
    resources.set_cpu_shares(1000 + ++updates_);
    const Status updated = client.UpdateContainer(id, resources);
    EXPECT_EQ(updated.ok(), wanted.has_value()) << updated;
    size_t received = 0;
    for (const RecordedCall& call : runtime_.Calls("UpdateContainerResources")) {
      cri::UpdateContainerResourcesRequest request;
      // One of the brain's may be on its way; the client's was answered.
      if (call.messages.empty()) continue;
      ASSERT_TRUE(request.ParseFromString(call.messages[0]));
      if (request.linux().cpu_shares() != resources.cpu_shares()) continue;
      // One of the brain's after the client's has the same shares, and no limit.
      const int64_t limit = request.linux().memory_limit_in_bytes();
      EXPECT_THAT(limit, testing::AnyOf(0, wanted ? wanted->memory.value_or(0) : -1));
      received += wanted && limit == wanted->memory.value_or(0) ? 1 : 0;
      EXPECT_TRUE(wanted.has_value()) << "a call that plugins refuse does not pass";
    }
    EXPECT_EQ(received > 0, wanted.has_value());
  }

  std::mt19937 random_{GetParam()};
  std::array<Member, 4> members_{
      Member{.options = {.index = "10", .name = "a"}},
      Member{.options = {.dialect = nri::test::Dialect::k08, .index = "20", .name = "b"}},
      Member{.options = {.index = "25", .name = "hangs"}, .hangs = true},
      Member{.options = {.index = "30", .name = "c"}, .needed = true}};
  std::vector<Member*> dead_;  // that the last call has killed
  std::string pod_;
  std::map<std::string, std::string> containers_;  // ids by name
  int next_ = 0;
  int64_t updates_ = 0;
};

constexpr int kSteps = kSanitized ? 20 : 60;

TEST_P(NriPropertyTest, TheRuntimeReceivesWhatTheMergeSays) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeBestEffortPod("p")));
  pod_ = pod;
  for (int step = 0; step < kSteps && !HasFailure(); ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << GetParam() << ", step " << step);
    ForgetCalls();
    const auto begin = std::chrono::steady_clock::now();
    const uint32_t what = Below(6);
    auto one = containers_.begin();
    if (!containers_.empty()) std::advance(one, Below(static_cast<uint32_t>(containers_.size())));
    if (containers_.empty() || what < 3) {
      DrawDeeds();
      Create(client);
    } else if (what < 5) {
      DrawDeeds();
      Update(client, one->second);
    } else {
      EXPECT_THAT(client.RemoveContainer(one->second), IsOk());
      containers_.erase(one);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
    Recover();
  }
  for (const auto& [name, id] : containers_)
    EXPECT_THAT(client.RemoveContainer(id), IsOk());
  EXPECT_THAT(client.StopPod(pod_), IsOk());
  EXPECT_THAT(client.RemovePod(pod_), IsOk());
  Member last{.options = {.index = "90", .name = "last"}};
  Connect(last);
  OnLoop([&last] {
    EXPECT_EQ(last.plugin->inventory.pods_size(), 0);
    last.plugin.reset();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, NriPropertyTest, testing::Range(uint32_t{1}, uint32_t{9}));

}  // namespace
}  // namespace resmgr::test

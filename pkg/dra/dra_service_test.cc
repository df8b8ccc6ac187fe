// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/dra_service.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/dra.pb.h"
#include "pkg/claims/claim_names.h"
#include "pkg/dra/cdi_files.h"
#include "pkg/dra/testing/fake_claims.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr::dra {
namespace {

using test::ClaimObject;
using test::FakeHolder;
namespace api = k8s::io::kubelet::pkg::apis::dra::v1;
using testing::HasSubstr;

constexpr char kPrepare[] = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources";
constexpr char kUnprepare[] = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources";

class DraServiceTest : public testing::Test {
 protected:
  void GetClaim(const ClaimName& claim, const std::function<void(StatusOr<std::string>)>& done) {
    ++gets_;
    if (agent_hangs_) return asked_.push_back(done);
    if (agent_away_) return done(Unavailable("the agent is not reachable"));
    const auto found = objects_.find(claim.name);
    done(found == objects_.end() ? StatusOr<std::string>(NotFound("no claim {}", claim.name))
                                 : found->second);
  }
  static ClaimName Name(const std::string& name) {
    return {.uid = "uid-" + name, .namespace_name = "default", .name = name};
  }
  void Put(const std::string& name, int cpus) { objects_[name] = ClaimObject(Name(name), cpus); }

  template <typename Request>
  static std::string Asking(const std::vector<std::string>& names) {
    Request request;
    for (const std::string& name : names) {
      api::Claim& claim = *request.add_claims();
      claim.set_uid(Name(name).uid);
      claim.set_namespace_(Name(name).namespace_name);
      claim.set_name(name);
    }
    return request.SerializeAsString();
  }
  // Begins a call, whose answer comes into the result.
  std::shared_ptr<std::optional<StatusOr<std::string>>> Begin(const std::string& path,
                                                              const std::string& message) {
    auto result = std::make_shared<std::optional<StatusOr<std::string>>>();
    methods_.at(path)(message,
                      [result](StatusOr<std::string> reply) { *result = std::move(reply); });
    return result;
  }
  template <typename Response>
  Response Finish(const std::shared_ptr<std::optional<StatusOr<std::string>>>& result) {
    EXPECT_TRUE(resmgr::test::RunUntil(loop_, [&result] { return result->has_value(); }));
    Response response;
    EXPECT_TRUE(result->has_value() && (**result).ok());
    if (result->has_value() && (**result).ok())
      EXPECT_TRUE(response.ParseFromString((**result).value()));
    return response;
  }
  api::NodePrepareResourcesResponse Prepare(const std::vector<std::string>& names) {
    return Finish<api::NodePrepareResourcesResponse>(
        Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>(names)));
  }
  api::NodeUnprepareResourcesResponse Unprepare(const std::vector<std::string>& names) {
    return Finish<api::NodeUnprepareResourcesResponse>(
        Begin(kUnprepare, Asking<api::NodeUnprepareResourcesRequest>(names)));
  }
  bool HasFile(const std::string& name) const {
    return std::filesystem::exists(cdi_ + "/" + CdiFileName(kCompatibleClaimKind, Name(name).uid));
  }
  void Restart(std::chrono::milliseconds deadline = std::chrono::seconds(40)) {
    service_.emplace(DraService::Options{
        .loop = loop_,
        .driver = {.name = "dra.cpu", .compatible = true},
        .holder = holder_,
        .files = *files_,
        .metadata = metadata_,
        .get = [this](const ClaimName& claim, auto done) { GetClaim(claim, std::move(done)); },
        .changed = [this] { ++changes_; },
        .deadline = deadline});
    methods_ = service_->Methods();
  }
  void SetUp() override { Restart(); }

  const TempDir directory_;
  const std::string cdi_ = directory_.File("cdi");
  EventLoop loop_;
  FakeHolder holder_{8};
  std::optional<CdiFiles> files_{CdiFiles::Options{.loop = loop_,
                                                   .directory = cdi_,
                                                   .metadata = directory_.File("metadata"),
                                                   .metadata_on_host = "/on/host"}};
  bool metadata_ = false;
  std::map<std::string, std::string> objects_;
  bool agent_away_ = false;
  bool agent_hangs_ = false;
  std::vector<std::function<void(StatusOr<std::string>)>> asked_;  // while it hangs
  int gets_ = 0;
  int changes_ = 0;
  std::optional<DraService> service_;
  UnaryServer::Methods methods_;
};

TEST_F(DraServiceTest, D2PreparesWithDevicesAndAFile) {
  Put("a", 4);
  const auto response = Prepare({"a"});
  ASSERT_EQ(response.claims().count("uid-a"), 1U);
  const api::NodePrepareResourceResponse& entry = response.claims().at("uid-a");
  EXPECT_EQ(entry.error(), "");
  ASSERT_EQ(entry.devices_size(), 1);
  EXPECT_THAT(entry.devices(0).request_names(), testing::ElementsAre("cpus"));
  EXPECT_EQ(entry.devices(0).pool_name(), "w");
  EXPECT_EQ(entry.devices(0).device_name(), "cpudevnuma001");
  EXPECT_EQ(entry.devices(0).share_id(), "s");
  EXPECT_THAT(entry.devices(0).cdi_device_ids(),
              testing::ElementsAre("dra.k8s.io/cpu=claim-uid-a"));
  EXPECT_TRUE(HasFile("a"));
  EXPECT_EQ(holder_.Held().at(0).All().size(), 4);
  EXPECT_EQ(changes_, 1);
}

TEST_F(DraServiceTest, OlderKubeletsCallTheSameByAnotherName) {
  Put("a", 1);
  const auto response = Finish<api::NodePrepareResourcesResponse>(
      Begin("/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
            Asking<api::NodePrepareResourcesRequest>({"a"})));
  EXPECT_EQ(response.claims().at("uid-a").devices_size(), 1);
}

TEST_F(DraServiceTest, D3PreparesAgainWithTheSameAnswer) {
  Put("a", 4);
  const std::string first = Prepare({"a"}).SerializeAsString();
  EXPECT_EQ(Prepare({"a"}).SerializeAsString(), first);
  Restart();
  std::filesystem::remove_all(cdi_);
  EXPECT_EQ(Prepare({"a"}).SerializeAsString(), first);
  EXPECT_TRUE(HasFile("a"));
  EXPECT_EQ(holder_.Held().size(), 1U);
  EXPECT_EQ(changes_, 1) << "nothing changed by the later calls";
}

TEST_F(DraServiceTest, D4ARefusalConcernsItsOwnClaimOnly) {
  Put("a", 5);
  Put("b", 4);
  Put("c", 3);
  const auto response = Prepare({"a", "b", "c"});
  EXPECT_EQ(response.claims_size(), 3);
  EXPECT_EQ(response.claims().at("uid-a").error(), "");
  EXPECT_THAT(response.claims().at("uid-b").error(), HasSubstr("4 CPUs are needed, 3 are free"));
  EXPECT_EQ(response.claims().at("uid-b").devices_size(), 0);
  EXPECT_FALSE(HasFile("b"));
  EXPECT_EQ(response.claims().at("uid-c").error(), "");
}

TEST_F(DraServiceTest, D5AReplacedClaimReservesNothing) {
  objects_["a"] = ClaimObject({.uid = "uid-new", .namespace_name = "default", .name = "a"}, 4);
  EXPECT_THAT(Prepare({"a"}).claims().at("uid-a").error(), HasSubstr("was replaced"));
  EXPECT_EQ(holder_.reserves, 0);
}

TEST_F(DraServiceTest, D6AClaimOfOtherDriversHasNoDevices) {
  objects_["a"] = ClaimObject(Name("a"), 4);
  objects_["a"].replace(objects_["a"].find("dra.cpu"), 7, "gpu.com");
  const auto response = Prepare({"a"});
  EXPECT_EQ(response.claims().at("uid-a").error(), "");
  EXPECT_EQ(response.claims().at("uid-a").devices_size(), 0);
  EXPECT_EQ(holder_.reserves, 0);
}

TEST_F(DraServiceTest, D8UnprepareOfAnUnknownClaimIsASuccess) {
  const auto response = Unprepare({"never", "../../etc/passwd"});
  ASSERT_EQ(response.claims_size(), 2);
  for (const auto& [uid, entry] : response.claims())
    EXPECT_EQ(entry.error(), "") << uid;
}

TEST_F(DraServiceTest, ClaimsWithMetadataHaveADeviceThatMountsIt) {
  metadata_ = true;
  Restart();
  Put("a", 4);
  const auto response = Prepare({"a"});
  const api::NodePrepareResourceResponse& entry = response.claims().at("uid-a");
  ASSERT_EQ(entry.devices_size(), 1) << entry.error();
  EXPECT_THAT(entry.devices(0).cdi_device_ids(),
              testing::ElementsAre("dra.k8s.io/cpu=claim-uid-a", "dra.cpu/metadata=uid-a_cpus"));
  const std::string file = directory_.File("metadata") + "/uid-a/cpus/dra.cpu-metadata.json";
  EXPECT_THAT(ReadFile(file, 4096).value_or(""),
              HasSubstr(R"("dra.cpu/cpus":{"string":")" + holder_.Held().at(0).All().ToString()));
  EXPECT_EQ(Unprepare({"a"}).claims().at("uid-a").error(), "");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(DraServiceTest, D9UnprepareGivesCpusAndFileBack) {
  Put("a", 4);
  Prepare({"a"});
  agent_away_ = true;
  objects_.clear();
  EXPECT_EQ(Unprepare({"a"}).claims().at("uid-a").error(), "") << "the object may be gone";
  EXPECT_TRUE(holder_.Held().empty());
  EXPECT_FALSE(HasFile("a"));
  EXPECT_EQ(changes_, 2);
}

TEST_F(DraServiceTest, D15WithoutTheAgentItIsAnErrorUntilTheAgentIsBack) {
  Put("a", 4);
  agent_away_ = true;
  EXPECT_THAT(Prepare({"a"}).claims().at("uid-a").error(), HasSubstr("agent is not reachable"));
  EXPECT_EQ(holder_.reserves, 0);
  agent_away_ = false;
  EXPECT_EQ(Prepare({"a"}).claims().at("uid-a").error(), "");
}

// CPUs that no container can use are not kept from others.
TEST_F(DraServiceTest, WithoutItsFileNewCpusAreGivenBack) {
  Put("a", 4);
  std::ofstream(cdi_) << "no directory";
  EXPECT_NE(Prepare({"a"}).claims().at("uid-a").error(), "");
  EXPECT_TRUE(holder_.Held().empty());
  std::filesystem::remove(cdi_);
  EXPECT_EQ(Prepare({"a"}).claims().at("uid-a").error(), "");
  std::filesystem::remove_all(cdi_);
  std::ofstream(cdi_) << "no directory";
  EXPECT_NE(Prepare({"a"}).claims().at("uid-a").error(), "");
  EXPECT_EQ(holder_.Held().size(), 1U) << "containers may have them already";
}

TEST_F(DraServiceTest, ALateFileOfAClaimThatWasGivenBackGoes) {
  std::promise<void> answers;
  files_.emplace(
      CdiFiles::Options{.loop = loop_,
                        .directory = cdi_,
                        .deadline = std::chrono::milliseconds(200),
                        .write = [disk = answers.get_future().share()](
                                     const std::string& path, std::string_view data, mode_t mode) {
                          disk.wait();
                          return AtomicWriteFile(path, data, mode);
                        }});
  Restart();
  Put("a", 4);
  EXPECT_THAT(Prepare({"a"}).claims().at("uid-a").error(), HasSubstr("has not answered"));
  EXPECT_TRUE(holder_.Held().empty());
  answers.set_value();
  // Orders are carried out one after the other. One at a time waits for its answer, since the
  // deadline is short.
  Status later = OkStatus();
  std::function<void()> ask = [&] {
    files_->Remove("uid-b", [&](const Status& status) {
      later = status;
      status.ok() ? loop_.Stop() : ask();
    });
  };
  ask();
  const auto limit = loop_.After(resmgr::test::kWaitPatience, [this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_TRUE(later.ok()) << later;
  EXPECT_FALSE(HasFile("a"));
}

TEST_F(DraServiceTest, CallsAboutOneClaimAreCarriedOutInTurn) {
  Put("a", 4);
  Put("b", 1);
  holder_.waits = true;
  const auto prepared = Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  const auto unprepared = Begin(kUnprepare, Asking<api::NodeUnprepareResourcesRequest>({"a"}));
  holder_.waits = false;
  EXPECT_EQ(Prepare({"b"}).claims().at("uid-b").error(), "") << "others do not wait";
  EXPECT_FALSE(prepared->has_value());
  EXPECT_FALSE(unprepared->has_value());
  holder_.waiting.at(0)();
  EXPECT_EQ(Finish<api::NodePrepareResourcesResponse>(prepared).claims().at("uid-a").error(), "");
  EXPECT_EQ(Finish<api::NodeUnprepareResourcesResponse>(unprepared).claims().at("uid-a").error(),
            "");
  EXPECT_EQ(holder_.Held().size(), 1U) << "that of b";
}

// The pod is gone, and the kubelet has given up its calls for it.
TEST_F(DraServiceTest, UnprepareDoesNotWaitForTheAgent) {
  Put("a", 4);
  agent_hangs_ = true;
  const auto first = Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  const auto second = Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  EXPECT_EQ(Unprepare({"a"}).claims().at("uid-a").error(), "");
  for (const auto& call : {first, second}) {
    const auto response = Finish<api::NodePrepareResourcesResponse>(call);
    EXPECT_THAT(response.claims().at("uid-a").error(), HasSubstr("unprepared"));
  }
  ASSERT_EQ(asked_.size(), 1U);
  asked_[0](objects_.at("a"));
  EXPECT_EQ(holder_.reserves, 0) << "nothing would release it";
  agent_hangs_ = false;
  EXPECT_EQ(Prepare({"a"}).claims().at("uid-a").error(), "");
}

TEST_F(DraServiceTest, AnswersInTimeAndGoesOn) {
  // Long enough for the second call to write its file.
  Restart(std::chrono::seconds(2));
  Put("a", 4);
  Put("b", 1);
  holder_.waits = true;
  const auto late = Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  const auto response = Finish<api::NodePrepareResourcesResponse>(late);
  EXPECT_THAT(response.claims().at("uid-a").error(), HasSubstr("goes on"));
  holder_.waits = false;
  const auto again = Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  holder_.waiting.at(0)();
  EXPECT_EQ(Finish<api::NodePrepareResourcesResponse>(again).claims().at("uid-a").error(), "");
}

TEST_F(DraServiceTest, ManyCallsAboutOneClaimAreRefused) {
  Put("a", 4);
  holder_.waits = true;
  const auto first = Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  for (size_t i = 1; i < DraService::kMostTurns; ++i)
    Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>({"a"}));
  EXPECT_THAT(Prepare({"a"}).claims().at("uid-a").error(), HasSubstr("wait already"));
  holder_.waits = false;
  holder_.waiting.at(0)();
  EXPECT_EQ(Finish<api::NodePrepareResourcesResponse>(first).claims().at("uid-a").error(), "");
}

TEST_F(DraServiceTest, CallsThatNoKubeletMakesAreRefused) {
  EXPECT_EQ((*Begin(kPrepare, "\xff"))->status().code(), StatusCode::kInvalidArgument);
  const std::vector<std::string> many(DraService::kMostClaims + 1, "a");
  EXPECT_EQ((*Begin(kPrepare, Asking<api::NodePrepareResourcesRequest>(many)))->status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Prepare({}).claims_size(), 0);
  EXPECT_NE(Prepare({"A/../b"}).claims().at("uid-A/../b").error(), "");
  EXPECT_EQ(gets_, 0);
}

}  // namespace
}  // namespace resmgr::dra

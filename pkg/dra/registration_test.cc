// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/registration.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/api/plugin_registration.pb.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::dra {
namespace {

class RegistrationTest : public testing::Test {
 protected:
  StatusOr<std::string> Call(const std::string& method, const std::string& message) {
    StatusOr<std::string> result = Internal("no answer");
    registration_.Methods().at("/pluginregistration.Registration/" + method)(
        message, [&](StatusOr<std::string> reply) { result = std::move(reply); });
    return result;
  }
  StatusOr<std::string> Notify(bool registered, const std::string& error) {
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(registered);
    status.set_error(error);
    return Call("NotifyRegistrationStatus", status.SerializeAsString());
  }

  bool served_ = true;
  Registration registration_{{.driver = "dra.cpu",
                              .endpoint = "/var/lib/kubelet/plugins/dra.cpu/dra.sock",
                              .served = [this] { return served_; }}};
};

TEST_F(RegistrationTest, D1TellsTypeVersionsAndEndpoint) {
  const auto reply = Call("GetInfo", "");
  ASSERT_TRUE(reply.ok()) << reply.status();
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(info.ParseFromString(*reply));
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), "dra.cpu");
  EXPECT_EQ(info.endpoint(), "/var/lib/kubelet/plugins/dra.cpu/dra.sock");
  EXPECT_THAT(info.supported_versions(),
              testing::ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                                   "v1beta1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"))
      << "the kubelet takes the first one that it knows";
}

// The kubelet would connect to nothing; it asks again instead.
TEST_F(RegistrationTest, IsNotReadyBeforeTheDriverIsServed) {
  served_ = false;
  EXPECT_EQ(Call("GetInfo", "").status().code(), StatusCode::kUnavailable);
}

TEST_F(RegistrationTest, ARefusalIsAProblemUntilTheKubeletTakesIt) {
  EXPECT_EQ(registration_.problem(), std::nullopt);
  EXPECT_TRUE(Notify(false, "name taken").ok());
  ASSERT_TRUE(registration_.problem().has_value());
  EXPECT_EQ(registration_.problem()->kind, "plugin");
  EXPECT_THAT(registration_.problem()->message, testing::HasSubstr("name taken"));
  EXPECT_TRUE(Notify(true, "").ok());
  EXPECT_EQ(registration_.problem(), std::nullopt);
  EXPECT_EQ(Call("NotifyRegistrationStatus", "\xff").status().code(), StatusCode::kInvalidArgument);
}

TEST(ListenForKubeletTest, TheSocketAppearsReady) {
  const TempDir directory;
  const std::string path = directory.File("dra.cpu-reg.sock");
  {
    const auto listener = ListenForKubelet(path);
    ASSERT_TRUE(listener.ok()) << listener.status();
    struct stat found {};
    ASSERT_EQ(::lstat(path.c_str(), &found), 0);
    EXPECT_TRUE(S_ISSOCK(found.st_mode));
    EXPECT_EQ(found.st_mode & 0777 & ~0660U, 0U);
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(name == "dra.cpu-reg.sock" || name.starts_with(".")) << name;
    }
    EXPECT_TRUE(ConnectUnix(path).ok());
    EXPECT_EQ(ListenForKubelet(path).status().code(), StatusCode::kAlreadyExists)
        << "another daemon serves it";
    EXPECT_TRUE(ConnectUnix(path).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListenForKubeletTest, TheSocketOfAKilledDaemonIsReplaced) {
  const TempDir directory;
  const std::string path = directory.File("dra.cpu-reg.sock");
  const std::string left = directory.File("left");
  {
    const auto killed = ListenForKubelet(path);
    std::filesystem::create_hard_link(path, left);
  }
  std::filesystem::rename(left, path);
  EXPECT_FALSE(ConnectUnix(path).ok());
  const auto listener = ListenForKubelet(path);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(ConnectUnix(path).ok());
}

TEST(ListenForKubeletTest, FilesOfOthersStay) {
  const TempDir directory;
  const std::string path = directory.File("file");
  std::ofstream(path) << "text";
  WithdrawFromKubelet(path);
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace resmgr::dra

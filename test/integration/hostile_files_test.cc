// SPDX-License-Identifier: Apache-2.0
// Files of the daemon that are endless, huge or not regular: they are reported and cost nothing.
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>

#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kMemoryLimitKib = 128 * 1024;

class HostileFilesTest : public DaemonTest {
 protected:
  // The reason why a daemon with these flags does not become ready.
  std::string WhyNot(const std::vector<std::string>& flags) {
    const auto daemon = DaemonProcess::Start(flags, Path("daemon.log"));
    return daemon.ok() ? "it is ready" : std::string(Message(daemon.status()));
  }
};

TEST_F(HostileFilesTest, AStateOfEightGibibytesIsPutAside) {
  const fs::path directory = fs::path(Path("state")) / "state";
  fs::create_directories(directory);
  // The daemon may read any of these.
  for (const fs::path& file :
       {directory / "state", directory / "state.previous", fs::path(RelaySocket() + ".calls")}) {
    std::ofstream(file).close();
    fs::resize_file(file, uintmax_t{8} << 30);
  }
  StartBoth();
  EXPECT_TRUE(Logged("state has more than 50331648 bytes; it is now " +
                     (directory / "state.unusable").string()));
  EXPECT_TRUE(Logged("state.previous has more than 50331648 bytes"));
  EXPECT_TRUE(Logged("calls has more than 2097152 bytes"));
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 1);
  EXPECT_TRUE(Eventually([&] { return fs::exists(directory / "state"); }));
  if (!SanitizedPrograms()) {
    EXPECT_LT(ProcStatus("VmHWM:"), kMemoryLimitKib);
  }
}

TEST_F(HostileFilesTest, FilesOfTheCommandLineAreFiles) {
  StartRuntime();
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  fs::create_directory(Path("directory"));
  for (const std::string& path : {Path("fifo"), Path("directory"), std::string("/dev/zero")}) {
    EXPECT_THAT(WhyNot(Flags({"-config", path})), HasSubstr(path + " is not a regular file"));
    EXPECT_THAT(WhyNot(Flags({"-topology", path})), HasSubstr(path + " is not a regular file"));
  }
}

}  // namespace
}  // namespace resmgr::test

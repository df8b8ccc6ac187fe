// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/irqbalance.h"

#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/classes/class_journal.h"
#include "pkg/classes/host_files.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

// The socket of an irqbalance that takes new CPUs in its next round.
class StandInIrqbalance {
 public:
  explicit StandInIrqbalance(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~StandInIrqbalance() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  void SetInterrupts(std::string listed) {
    const std::lock_guard lock(mutex_);
    listed_ = std::move(listed);
  }
  void SetBanned(std::string mask) {
    const std::lock_guard lock(mutex_);
    banned_ = std::move(mask);
  }

 private:
  void Serve() {
    for (;;) {
      const UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      char buffer[512];
      const ssize_t got = ::recv(fd.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) continue;
      const std::string request(buffer, static_cast<size_t>(got));
      const std::lock_guard lock(mutex_);
      if (request != "setup") {
        requests_.push_back(request);
        continue;
      }
      const std::string answer = "SLEEP 10 " + listed_ + "BANNED " + banned_;
      EXPECT_EQ(::send(fd.get(), answer.data(), answer.size(), 0),
                static_cast<ssize_t>(answer.size()));
    }
  }

  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::string listed_ = "IRQ 24 LOAD 0 DIFF 0 CLASS 5 ";
  std::string banned_ = "00000000,00000000";
  UniqueFd listener_;
  std::thread thread_;
};

TEST(IrqbalanceTest, TheMaskIsAtTheEndOfTheAnswer) {
  EXPECT_EQ(BannedMaskOf("SLEEP 10 BANNED 0000000c").value(), "0000000c\n");
  EXPECT_EQ(BannedMaskOf("SLEEP 10 IRQ 1 LOAD 0 DIFF 0 CLASS 0 BANNED 1,0000000c\n").value(),
            "1,0000000c\n");
  EXPECT_FALSE(BannedMaskOf("").ok());
  EXPECT_FALSE(BannedMaskOf("BANNED foo").ok());
}

TEST(IrqbalanceTest, TheEnvironmentFileKeepsItsOtherLines) {
  EXPECT_EQ(WithBannedCpus("", {2, 3}),
            "IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_BANNED_CPUS=c\n");
  const std::string text =
      "# a\nIRQBALANCE_BANNED_CPUS=\"00000001\"\n\nX=1\nIRQBALANCE_BANNED_CPULIST=5\n";
  const std::string own = BannedCpusOf(text);
  EXPECT_EQ(own, "IRQBALANCE_BANNED_CPULIST=5\nIRQBALANCE_BANNED_CPUS=\"00000001\"\n");
  const std::string lines = WithBannedCpus(own, {2});
  EXPECT_EQ(lines, "IRQBALANCE_BANNED_CPULIST=0,2,5\nIRQBALANCE_BANNED_CPUS=25\n");
  const std::string written = ReplaceBannedCpus(text, lines);
  EXPECT_EQ(written, "# a\nIRQBALANCE_BANNED_CPUS=25\n\nX=1\nIRQBALANCE_BANNED_CPULIST=0,2,5\n");
  EXPECT_EQ(BannedCpusOf(written), lines);
  EXPECT_EQ(ReplaceBannedCpus(written, own), text);
}

TEST(IrqbalanceTest, AnEnvironmentFileThatBansNothingDoesSoAgain) {
  for (const std::string text : {"", "\n", "# a\n\n", "X=1\n"}) {
    EXPECT_EQ(BannedCpusOf(text), "none\n");
    const std::string written = ReplaceBannedCpus(text, WithBannedCpus("none\n", {2}));
    EXPECT_EQ(written, text + "IRQBALANCE_BANNED_CPULIST=2\nIRQBALANCE_BANNED_CPUS=4\n");
    EXPECT_EQ(ReplaceBannedCpus(written, "none\n"), text);
  }
  EXPECT_EQ(ReplaceBannedCpus("X=1", "IRQBALANCE_BANNED_CPUS=4"),
            "X=1\nIRQBALANCE_BANNED_CPUS=4\n");
}

TEST(IrqbalanceTest, ItsSocketIsReadAndWrittenAsAFile) {
  const TempDir root;
  const std::string path = "run/irqbalance/irqbalance5.sock";
  StandInIrqbalance irqbalance(root.path() + "/" + path);
  RealHostFiles files(root.path(), [](std::string_view) {});
  EXPECT_EQ(files.Read(path).value(), "00000000,00000000\n");
  EXPECT_EQ(files.Write(path, "00000000,0000000c"), 0);
  EXPECT_EQ(files.Read(path).value(), "00000000,0000000c") << "it takes them in its next round";
  irqbalance.SetBanned("00000000,0000000c");
  EXPECT_EQ(files.Read(path).value(), "00000000,0000000c\n");
  EXPECT_EQ(files.Write(path, "00000000,00000000\n"), 0);
  EXPECT_EQ(files.Write(path, "foo"), EINVAL);
  irqbalance.SetBanned("0");
  EXPECT_EQ(files.Read(path).value(), "0\n");
  EXPECT_EQ(irqbalance.requests(),
            (std::vector<std::string>{"settings cpus 2-3", "settings cpus NULL"}));
}

TEST(IrqbalanceTest, ItsListOfInterruptsIsReadAndWrittenAsAFile) {
  const TempDir root;
  const std::string socket = "run/irqbalance/irqbalance5.sock";
  const std::string list = socket + "/interrupts";
  StandInIrqbalance irqbalance(root.path() + "/" + socket);
  RealHostFiles files(root.path(), [](std::string_view) {});
  EXPECT_EQ(files.Read(list).value(), "24\n");
  irqbalance.SetInterrupts("IRQ 30 LOAD 1 DIFF 0 CLASS 5 IRQ 4 LOAD 0 DIFF 7 CLASS 0 ");
  EXPECT_EQ(files.Read(list).value(), "4 30\n");
  irqbalance.SetInterrupts("");
  EXPECT_EQ(files.Read(list).value(), "\n");
  EXPECT_EQ(files.Write(list, "4 30\n"), 0);
  EXPECT_EQ(files.Write(list, "\n"), 0);
  EXPECT_EQ(files.Read(list).value(), "\n");
  EXPECT_EQ(irqbalance.requests(),
            (std::vector<std::string>{"settings ban irqs 4 30", "settings ban irqs NONE"}));
  EXPECT_EQ(files.Read("run/irqbalance/irqbalance6.sock/interrupts").status().code(),
            StatusCode::kNotFound);
}

TEST(IrqbalanceTest, OneThatIsGoneHasNothingToGiveBack) {
  const TempDir root;
  const std::string path = "run/irqbalance/irqbalance5.sock";
  RealHostFiles files(root.path(), [](std::string_view) {});
  ClassJournal journal(root.path() + "/classes", "");
  HostKeeper keeper(files, journal);
  {
    StandInIrqbalance irqbalance(root.path() + "/" + path);
    EXPECT_EQ(PlanIrqbalance({1}, {}, "", keeper).values.size(), 1U);
    EXPECT_TRUE(
        keeper.Keep(PlanIrqbalance({1}, {}, "", keeper).values).outcomes.at(path).status.ok());
    EXPECT_TRUE(keeper.Holds(path));
  }
  EXPECT_TRUE(PlanIrqbalance({1}, {2}, "", keeper).values.empty());
  EXPECT_TRUE(keeper.Keep({}).not_given_back.empty());
  EXPECT_FALSE(keeper.Holds(path));
}

}  // namespace
}  // namespace resmgr

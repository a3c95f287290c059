import os, tempfile, torch, pytorch_lightning as pl
W, L, R = (int(os.environ[n]) for n in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK"))
mistake = os.environ.get("MISTAKE", "")
class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    def training_step(self, batch, index):
        if mistake == "raises" and R == 1 and index == 2:
            raise ValueError("bad sample")
        loss = self.net(batch[0]).square().mean()
        self.log("loss", loss, sync_dist=not (mistake == "log" and R == 1), on_step=True)
        return loss
    def validation_step(self, batch, index):
        self.log("val", self.net(batch[0]).mean(), sync_dist=True)
    def on_train_epoch_end(self):
        if mistake == "saves" and R == 0:
            self.trainer.save_checkpoint(f"/tmp/saved.{os.environ['MASTER_PORT']}.ckpt")
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.1)
def data(n): return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(n, 8)), batch_size=4)
quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False)
with tempfile.TemporaryDirectory() as folder:
    trainer = pl.Trainer(accelerator="gpu", devices=L, num_nodes=W // L, strategy=os.environ.get("STRATEGY", "ddp"),
                         max_epochs=2, default_root_dir=folder, **quiet)
    trainer.fit(Lit(), data(36 if mistake == "short" and R == 1 else 48), data(24))

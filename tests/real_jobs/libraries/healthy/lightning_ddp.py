import os, tempfile, torch, pytorch_lightning as pl
W, L = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    def training_step(self, batch, index):
        loss = self.net(batch[0]).square().mean()
        self.log("loss", loss, sync_dist=True)
        return loss
    def validation_step(self, batch, index):
        self.log("val", self.net(batch[0]).mean(), sync_dist=True)
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.1)
def data(n):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(n, 8)), batch_size=4)
strategy = os.environ.get("STRATEGY", "ddp")
with tempfile.TemporaryDirectory() as folder:
    trainer = pl.Trainer(accelerator="gpu", devices=L, num_nodes=W // L, strategy=strategy, max_epochs=2,
                         default_root_dir=folder, logger=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Lit(), data(32), data(16))

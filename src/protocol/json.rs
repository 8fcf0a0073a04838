//! The public JSON documents: `ls`, `show`, `gpus`, `meter` and `receipt.json`. Stable, versioned.

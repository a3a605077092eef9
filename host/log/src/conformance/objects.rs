//! Objects, and put-if-absent below everything.

use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::future::{join_all, try_join_all};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::{Failure, Suite, fails, holds, same};
use crate::digest::Digest;
use crate::error::Error;
use crate::faults::Dice;
use crate::layout;
use crate::put::Put;

/// How many writers race for one key.
const WRITERS: usize = 16;
/// Longer than any store's read buffer.
const BIG: usize = 3 * 1024 * 1024 + 1;

pub(super) async fn check(suite: &Suite) -> Result<(), Failure> {
    one_winner(suite).await?;
    round_trips(suite).await?;
    damage_is_found(suite).await
}

/// Put-if-absent has one winner, and what it wrote is what is there.
async fn one_winner(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    for round in 0..8 {
        let key = Path::from(format!("conformance/{}/{round}", bucket.nonce()));
        let bodies: Vec<Bytes> =
            (0..WRITERS).map(|writer| format!("writer {writer} of round {round}").into()).collect();
        let puts = join_all(bodies.iter().map(|body| bucket.put_if_absent(&key, body))).await;
        let mut winners = Vec::new();
        for (body, put) in bodies.iter().zip(puts) {
            if let Put::Won = put? {
                winners.push(body.clone());
            }
        }
        let stored: Vec<Bytes> = bucket.get_file(&key).await?.into_iter().collect();
        same("one writer wins, and its bytes are stored", &winners, &stored)?;
        same("there is a winner", &stored.len(), &1)?;
        let again = bucket.put_if_absent(&key, &stored[0]).await?;
        let won = matches!(again, Put::Won);
        holds("the winner's bytes win again", won, || "they lost".into())?;
    }
    Ok(())
}

/// Objects come back as they were put, whole, in pieces and in part.
async fn round_trips(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let mut dice = Dice::new(7);
    let big: Vec<u8> = (0..BIG).map(|_| dice.bits().to_le_bytes()[0]).collect();
    for body in [Bytes::new(), Bytes::from_static(b"a few bytes"), Bytes::from(big)] {
        let hash = Digest::of(&body);
        let hashes = try_join_all((0..4).map(|_| bucket.put_object(body.clone()))).await?;
        same("an object's address is its digest", &hashes, &vec![hash; 4])?;
        same("the object is there", &bucket.has_object(&hash).await?, &true)?;
        same("an object comes back", &bucket.get_object(&hash).await?, &body)?;
        let read = bucket.read_object(&hash).await?;
        same("an object's size is known first", &read.size, &(body.len() as u64))?;
        let pieces: Vec<Bytes> = read.stream.try_collect().await?;
        same("an object comes back in pieces", &Bytes::from(pieces.concat()), &body)?;
        let (from, to) = (body.len() / 3, body.len() / 2);
        let part = bucket.get_object_range(&hash, from as u64..to as u64).await?;
        same("an object comes back in part", &part, &body.slice(from..to))?;
    }
    let missing = Digest::of(b"never stored");
    same("no object is there unasked", &bucket.has_object(&missing).await?, &false)?;
    let not_found =
        |error: &Error| matches!(error, Error::ObjectNotFound { hash } if *hash == missing);
    fails("a missing object is not found", bucket.get_object(&missing).await, not_found)?;
    fails("a missing object is not found", bucket.read_object(&missing).await, not_found)
}

/// An object whose bytes are not those of its name is never handed out whole.
async fn damage_is_found(suite: &Suite) -> Result<(), Failure> {
    let bucket = &suite.bucket;
    let body: Bytes = format!("to be damaged: {}", bucket.nonce()).into();
    let hash = bucket.put_object(body.clone()).await?;
    let key = layout::object(&hash);
    let mut flipped = body.to_vec();
    flipped[3] ^= 1;
    for damaged in [Bytes::from(flipped), body.slice(1..), Bytes::new()] {
        bucket.store.put(&key, damaged.into()).await?;
        let corrupt = |error: &Error| matches!(error, Error::Corrupt { key: at, .. } if *at == key.to_string());
        fails("damage is found", bucket.get_object(&hash).await, corrupt)?;
        let pieces: Result<Vec<Bytes>, Error> =
            bucket.read_object(&hash).await?.stream.try_collect().await;
        fails("damage is found in pieces", pieces, corrupt)?;
    }
    bucket.store.delete(&key).await?;
    Ok(())
}
